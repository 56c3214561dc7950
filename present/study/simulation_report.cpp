#include "present/study/simulation_report.hpp"

#include <algorithm>
#include <array>

#include "config/unit_text.hpp"
#include "present/study/simulation_fields.hpp"
#include "sim/cost/token_price.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::present {
namespace {

constexpr std::array kIntervalMetrics{"requests_per_second",
                                      "output_tokens_per_second",
                                      "goodput",
                                      "ttft_p50",
                                      "ttft_p99",
                                      "tpot_p50",
                                      "tpot_p99",
                                      "itl_p99",
                                      "latency_p50",
                                      "latency_p99"};

// Of padding and of duplicate prompts.
[[nodiscard]] std::int64_t skipped_tokens(const study::Simulation& simulation) {
  return simulation.run.metrics.padding_tokens() + simulation.run.metrics.duplicate_tokens();
}

// What tokens cost, and how it is called, where a machine states what it follows from.
using Costs = std::vector<std::pair<const char*, const char*>>;
[[nodiscard]] Costs known_costs(const std::vector<study::Simulation>& all) {
  Costs known{{"joules_per_output_token", "J/output token"}, {"usd_per_million_tokens", "USD/M output tokens"}};
  std::erase_if(known, [&all](const auto& cost) {
    return std::ranges::none_of(all, [&cost](const auto& each) { return each.figures.contains(cost.first); });
  });
  return known;
}

void add_costs(const Costs& costs, const study::Simulation& simulation, Row& row) {
  for (const auto& [metric, title] : costs) {
    const auto figure = simulation.figures.find(metric);
    row.emplace_back(figure == simulation.figures.end() ? "" : number(figure->second));
  }
}

}  // namespace

HeadSetFigures head_sets_of(const study::Simulation& simulation) {
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

std::string cost_text(const study::Simulation& simulation) {
  const std::map<std::string, double>& figures = simulation.figures;
  std::string text = number(figures.at("tokens_per_second_per_gpu")) + " tokens/s per device with prompts";
  if (const auto user = figures.find("tokens_per_second_per_user"); user != figures.end())
    text = number(user->second) + " tokens/s per user, " + text;
  if (const auto joules = figures.find("joules_per_output_token"); joules != figures.end()) {
    const double devices = sim::machines_of(simulation.server.machine, simulation.server.deployment);
    const Watts each = *simulation.run.energy / simulation.run.metrics.duration() / devices;
    text += "; " + config::short_text(Joules(joules->second)) + " an output token (" + config::short_text(each) +
            (devices > 1 ? " of each device)" : ")");
  }
  if (const auto usd = figures.find("usd_per_million_tokens"); usd != figures.end())
    text += "; " + number(usd->second) + " USD a million output tokens";
  return text;
}

std::string trust_text(const sim::StepConfidence& trust) {
  return number(trust.low) + " to " + number(trust.high) + " times their predicted time at 90 % (" +
         std::string(sim::explanation(trust.basis)) + ")";
}

Table interval_table(const study::Simulation& simulation) {
  Table table;
  table.title = "90 % intervals";
  table.columns = {"figure", "simulated", "from", "to"};
  for (const std::string metric : kIntervalMetrics) {
    const auto interval = simulation.intervals.find(metric);
    if (interval == simulation.intervals.end()) continue;
    table.rows.push_back({metric, figure_cell(metric, simulation.figures.at(metric)),
                          figure_cell(metric, interval->second.low), figure_cell(metric, interval->second.high)});
  }
  table.notes = {"The same requests served twice more, with all steps at either end of what they take: " +
                 trust_text(simulation.trust) + "."};
  if (simulation.server.deployment.is_disaggregated())
    table.notes.emplace_back("KV transfers between replicas take their predicted time in all three.");
  return table;
}

Table sweep_table(const std::vector<study::Simulation>& all) {
  Table table;
  table.columns = {"machine"};
  for (const auto& [key, value] : all.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"requests/s", "output tokens/s", "TTFT P50", "TTFT P99", "TPOT P50", "TPOT P99", "goodput",
                             "KV blocks used at most", "preemptions"})
    table.columns.emplace_back(column);
  const bool has_few = std::ranges::any_of(all, [](const auto& each) { return each.server.few_heads.has_value(); });
  if (has_few) table.columns.emplace_back("requests with few KV heads");
  const bool skips = std::ranges::any_of(all, [](const study::Simulation& each) { return skipped_tokens(each) > 0; });
  if (skips) table.columns.emplace_back("skipped tokens");
  const Costs costs = known_costs(all);
  for (const auto& [metric, title] : costs) table.columns.emplace_back(title);
  for (const study::Simulation& simulation : all) {
    Row row{simulation.machines()};
    for (const auto& [key, value] : simulation.choices) row.emplace_back(value);
    const auto add_rate = [&](const char* metric) { row.emplace_back(number(simulation.figures.at(metric))); };
    add_rate("requests_per_second");
    add_rate("output_tokens_per_second");
    for (const char* metric : {"ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99"}) {
      const auto figure = simulation.figures.find(metric);
      if (figure == simulation.figures.end())
        row.emplace_back("");
      else
        row.emplace_back(config::short_text(Seconds(figure->second)));
    }
    add_rate("goodput");
    const double used = static_cast<double>(simulation.run.timeline.most_used_blocks()) /
                        static_cast<double>(simulation.run.num_blocks);
    row.emplace_back(percent(used));
    row.emplace_back(std::to_string(simulation.run.num_preemptions));
    if (has_few) row.emplace_back(std::to_string(simulation.run.head_sets.requests.back()));
    if (skips) row.emplace_back(std::to_string(skipped_tokens(simulation)));
    add_costs(costs, simulation, row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace dculab::present
