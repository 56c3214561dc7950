#include "cli/serving/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "study/scenario/axis_title.hpp"
#include "cli/output/progress.hpp"
#include "cli/serving/measured_serving.hpp"
#include "cli/serving/serving_report.hpp"
#include "cli/serving/serving_scenario.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "sim/serving/step_sample.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "sim/study/pareto.hpp"
#include "study/decide/objective.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] Json replicas_json(const sim::ServingRun& run) {
  Json json = Json::array();
  for (const sim::ReplicaRun& replica : run.replicas) {
    json.push_back({{"role", name(replica.role)},
                    {"requests", replica.requests},
                    {"steps", replica.num_steps},
                    {"preemptions", replica.num_preemptions},
                    {"utilization", replica.busy / run.metrics.duration()}});
    if (replica.role_switches > 0) json.back()["role_switches"] = replica.role_switches;
  }
  return json;
}

[[nodiscard]] study::FigureOf figures_of(const Simulation& simulation) {
  return [&figures = simulation.figures](const std::string& metric) {
    const auto figure = figures.find(metric);
    return figure == figures.end() ? std::numeric_limits<double>::quiet_NaN() : figure->second;
  };
}

[[nodiscard]] Simulation simulate_point(const config::SweepPoint& point, const std::string& machine_name,
                                        Serving serving, config::ChromeTrace* chrome_trace) {
  const config::Scenario& scenario = point.scenario;
  const bool measured = serving != Serving::simulated;
  sim::SimulatedServer server = study::resolve_server(scenario, study::resolve_machine(scenario, machine_name));
  if (measured) make_measurable(server, scenario, "give --set machine=FILE with a calibrated file of this machine");
  sim::StepSample sample(sim::kSampledSteps);
  const auto on_step = [&](const ServedStep& step, int engine) {
    sample.add(step);
    if (chrome_trace != nullptr) chrome_trace->add(step, engine);
  };
  Simulation done;
  done.machine = machine_name;
  done.choices = point.choices;
  done.slo = scenario.slo;
  const RequestWorkload workload = study::resolve_requests(scenario, server.model);
  done.run = sim::simulate(server, workload, scenario.slo, on_step);
  done.steps = sim::thinned(sample.batches(), sim::kPricedSteps);
  done.trust = sim::step_confidence(server, sample.batches());
  done.figures = compared_figures(done.run.metrics, done.run.num_steps);
  if (server.few_heads) done.figures[kFewHeadsRequests] = static_cast<double>(done.run.head_sets.requests.back());
  if (measured) {
    const auto timing = serving == Serving::simulated_and_traced ? engine::OpTiming::on : engine::OpTiming::off;
    MeasuredServing run = measure({.scenario = scenario,
                                   .options = server.options,
                                   .num_blocks = *server.num_blocks,
                                   .threads = server.machine.compute_units,
                                   .op_timing = timing,
                                   .machine = &server.machine,
                                   .replicas = replicas_here(scenario, server.options, "--measure")},
                                  workload);
    done.trace = std::move(run.trace);
    done.measured = compared_figures(run.served.metrics, run.served.num_steps);
    if (server.few_heads) done.measured[kFewHeadsRequests] = static_cast<double>(run.served.head_sets.requests.back());
  }
  done.server = std::move(server);
  return done;
}

// Of padding and of duplicate prompts.
[[nodiscard]] std::int64_t skipped_tokens(const Simulation& simulation) {
  return simulation.run.metrics.padding_tokens() + simulation.run.metrics.duplicate_tokens();
}

}  // namespace

sim::Prices step_prices(const std::vector<const Simulation*>& simulations) {
  return [simulations](const sim::Machine& machine) {
    std::vector<Seconds> times;
    for (const Simulation* simulation : simulations) {
      sim::SimulatedServer server = simulation->server;
      server.machine = machine;
      const std::vector<Seconds> of_one = sim::phase_times(server, simulation->steps);
      times.insert(times.end(), of_one.begin(), of_one.end());
    }
    return times;
  };
}

std::vector<Simulation> simulate_points(const std::vector<SimulatedPoint>& points, Serving serving, int threads,
                                        config::ChromeTrace* chrome_trace) {
  std::vector<Simulation> all(points.size());
  const bool alone = serving != Serving::simulated || chrome_trace != nullptr;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ProgressBar bar;
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      all[index] = simulate_point(*points[index].point, points[index].machine, serving, chrome_trace);
      return std::string();
    };
  };
  sim::work_in_order({0, points.size()},
                     alone         ? 1
                     : threads > 0 ? threads
                                   : cores,
                     make_worker, [&](std::uint64_t index, const std::string&) {
                       bar.update(points[index].machine,
                                  static_cast<double>(index + 1) / static_cast<double>(points.size()));
                     });
  bar.clear();
  return all;
}

std::vector<std::size_t> pareto_front(const std::vector<Simulation>& all, const std::vector<config::Aim>& aims,
                                      const config::Objective& objective) {
  sim::ParetoFront front;
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (!study::is_admissible(objective, figures_of(all[index]))) continue;
    const std::vector<double> weighed = study::costs(aims, figures_of(all[index]));
    if (!weighed.empty()) front.offer(index, weighed);
  }
  std::vector<std::size_t> numbers;
  for (const sim::ParetoFront::Point& point : front.points()) numbers.push_back(point.number);
  return numbers;
}

std::optional<std::size_t> best(const std::vector<Simulation>& all, const config::Objective& objective,
                                const std::function<bool(const Simulation&)>& among) {
  std::optional<std::size_t> found;
  double least = 0;
  for (std::size_t index = 0; index < all.size(); ++index) {
    if (among && !among(all[index])) continue;
    const double each = study::cost(objective.goal, figures_of(all[index])(objective.metric));
    if (std::isnan(each) || !study::is_admissible(objective, figures_of(all[index])) || (found && each >= least))
      continue;
    found = index;
    least = each;
  }
  return found;
}

HeadSetFigures head_sets_of(const Simulation& simulation) {
  return {.counts = simulation.run.head_sets,
          .many = simulation.server.model.heads().num_key_value_heads,
          .few = simulation.server.few_heads->model.heads().num_key_value_heads,
          .few_weights = simulation.run.few_heads_weights};
}

DraftFigures drafts_of(const sim::ServingRun& run) {
  return {.counts = run.drafts, .drafting = run.drafting, .verifying = run.busy - run.drafting};
}

std::string preemption_text(const sim::ServingRun& run) {
  const std::string text = std::to_string(run.num_preemptions) + " preemptions";
  if (run.swaps.preemptions == 0) return text;
  const auto time = run.time_by_bound.find("swap");
  return text + ", " + std::to_string(run.swaps.preemptions) + " of them by swap (" +
         config::short_text(run.swapped_out) + " out, " + config::short_text(run.swapped_in) + " in, " +
         config::short_text(time->second) + ")";
}

std::string label(const Simulation& simulation) {
  std::string text = simulation.machine;
  for (const auto& [key, value] : simulation.choices) text += ", " + study::axis_title(key) + " " + value;
  return text;
}

Table sweep_table(const std::vector<Simulation>& all) {
  Table table;
  table.columns = {"machine"};
  for (const auto& [key, value] : all.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"requests/s", "output tokens/s", "TTFT P50", "TTFT P99", "TPOT P50", "TPOT P99", "goodput",
                             "KV blocks used at most", "preemptions"})
    table.columns.emplace_back(column);
  const bool has_few = std::ranges::any_of(all, [](const auto& each) { return each.server.few_heads.has_value(); });
  if (has_few) table.columns.emplace_back("requests with few KV heads");
  const bool skips = std::ranges::any_of(all, [](const Simulation& each) { return skipped_tokens(each) > 0; });
  if (skips) table.columns.emplace_back("skipped tokens");
  for (const Simulation& simulation : all) {
    std::vector<Cell> row{simulation.machine};
    for (const auto& [key, value] : simulation.choices) row.emplace_back(value);
    const auto add_rate = [&](const char* metric) {
      row.emplace_back(number(simulation.figures.at(metric)), simulation.figures.at(metric));
    };
    add_rate("requests_per_second");
    add_rate("output_tokens_per_second");
    for (const char* metric : {"ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99"}) {
      const auto figure = simulation.figures.find(metric);
      if (figure == simulation.figures.end())
        row.emplace_back("");
      else
        row.emplace_back(config::short_text(Seconds(figure->second)), figure->second);
    }
    add_rate("goodput");
    const double used = static_cast<double>(simulation.run.timeline.most_used_blocks()) /
                        static_cast<double>(simulation.run.num_blocks);
    row.emplace_back(percent(used), used);
    row.emplace_back(std::to_string(simulation.run.num_preemptions));
    if (has_few) row.emplace_back(std::to_string(simulation.run.head_sets.requests.back()));
    if (skips) row.emplace_back(std::to_string(skipped_tokens(simulation)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json to_json(const Simulation& simulation) {
  const sim::ServingRun& run = simulation.run;
  Json json{{"machine", simulation.machine}, {"choices", Json::object()}};
  for (const auto& [key, value] : simulation.choices) json["choices"][key] = value;
  json["requests"] = run.metrics.requests();
  if (run.one_in > 1) json["one_in"] = run.one_in;
  json["requests_within_slo"] = run.metrics.requests_within_objective();
  json["prompt_tokens"] = run.metrics.prompt_tokens();
  json["cached_prompt_tokens"] = run.metrics.cached_tokens();
  if (run.metrics.stored_tokens() > 0) json["stored_prompt_tokens"] = run.metrics.stored_tokens();
  add_skipped(run.metrics.padding_tokens(), run.metrics.duplicate_tokens(), json);
  json["output_tokens"] = run.metrics.output_tokens();
  for (const auto& [metric, figure] : simulation.figures) json[metric] = figure;
  json["steps"] = run.num_steps;
  json["busy_seconds"] = run.busy.value();
  json["preemptions"] = run.num_preemptions;
  if (run.drafts.num_drafts > 0) json["speculation"] = draft_json(drafts_of(run));
  if (simulation.server.few_heads) json["groups_by_load"] = head_set_json(head_sets_of(simulation));
  if (run.swaps.preemptions > 0)
    json["swaps"] = {{"preemptions", run.swaps.preemptions},
                     {"bytes_out", run.swapped_out.value()},
                     {"bytes_in", run.swapped_in.value()},
                     {"seconds", run.time_by_bound.at("swap").value()}};
  if (run.replicas.size() > 1) json["replicas"] = replicas_json(run);
  json["num_blocks"] = run.num_blocks;
  json["most_used_blocks"] = run.timeline.most_used_blocks();
  for (const auto& [bound, time] : run.time_by_bound) json["seconds_by_bound"][bound] = time.value();
  json["basis"] = sim::name(simulation.trust.basis);
  json["step_time_interval"] = {simulation.trust.low, simulation.trust.high};  // over their prices
  for (const auto& [metric, interval] : simulation.intervals) json["intervals"][metric] = {interval.low, interval.high};
  if (!simulation.measured.empty()) json["measured"] = comparison_json(simulation.figures, simulation.measured);
  json["timeline"] = timeline_json(run.timeline);
  return json;
}

}  // namespace dculab::cli
