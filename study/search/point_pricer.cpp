#include "study/search/point_pricer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "sim/cost/token_price.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/serving/simulated_server.hpp"
#include "study/decide/objective.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/scenario/asked_metrics.hpp"
#include "study/scenario/server.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::uint8_t number_of(const std::string& bound, std::vector<std::string>& bounds) {
  const auto found = std::ranges::find(bounds, bound);
  const auto number = static_cast<std::uint8_t>(found - bounds.begin());
  if (found == bounds.end()) bounds.push_back(bound);
  return number;
}

// A reason is the same wherever the scenario lies.
[[nodiscard]] std::string without_file(std::string reason, const std::string& file) {
  if (reason.starts_with(file + ": ")) reason.erase(0, file.size() + 2);
  return reason;
}

}  // namespace

std::string whole_text(double figure) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), figure).ptr};
}

const CaseFigures& CasePricer::price(const SweepCase& asked, const sim::Machine& machine) {
  if (asked.is_served())
    serve(asked, machine);
  else
    price_step(asked, machine);
  return priced_;
}

void CasePricer::price_step(const SweepCase& asked, const sim::Machine& machine) {
  sim::price_step(machine, asked.plan, step_);
  const int context = asked.plan.batch.sequences.front().context_tokens();
  const sim::Capacity fits = sim::capacity(machine, asked.model, asked.options, context);
  const double blocks = std::ceil(context / static_cast<double>(asked.options.block_size));
  const auto sequences = static_cast<double>(asked.plan.batch.sequences.size());
  const double seconds = step_.seconds.value();
  const sim::StepCost cost = sim::step_cost(machine, asked.model, asked.plan, step_);
  constexpr double kMillion = 1e6, kUnknown = std::numeric_limits<double>::quiet_NaN();
  const double rate = static_cast<double>(asked.plan.batch.num_tokens()) / seconds;
  const double output = sim::output_tokens(asked.plan.batch);  // of a chunk that ends no prompt, none
  priced_.figures = {seconds,
                     rate,
                     (sequences * blocks * fits.block_bytes).value(),
                     static_cast<double>(fits.max_sequences),
                     rate / cost.devices,
                     cost.energy && output > 0 ? cost.energy->value() / output : kUnknown,
                     cost.usd && output > 0 ? *cost.usd / output * kMillion : kUnknown};
  priced_.bound = sim::step_bound(step_, machine);
}

void CasePricer::serve(const SweepCase& asked, const sim::Machine& machine) {
  const sim::SimulatedServer server = asked.server_on(machine);
  require_runnable(server, asked.scenario.file);
  const sim::ServingRun run = sim::simulate(server, asked.requests, asked.scenario.slo);
  const std::map<std::string, double> figures = run_figures(server, run);
  priced_.figures.clear();
  for (const std::string_view metric : search_metrics(asked.scenario.workload.kind)) {
    const auto figure = figures.find(std::string(metric));
    priced_.figures.push_back(figure == figures.end() ? std::numeric_limits<double>::quiet_NaN() : figure->second);
  }
  const auto longest = std::ranges::max_element(run.time_by_bound, {}, [](const auto& each) { return each.second; });
  priced_.bound = longest == run.time_by_bound.end() ? "" : longest->first;
}

PointPricer::PointPricer(const SweepSpace& space) : space_(space), cursor_(space) {}

std::optional<std::size_t> missing_metric(const SweepSpace& space, std::span<const double> figures) {
  const auto missing =
      std::ranges::find_if(space.asked(), [&](std::size_t metric) { return std::isnan(figures[metric]); });
  return missing == space.asked().end() ? std::nullopt : std::optional(*missing);
}

void PointPricer::price(std::uint64_t point, config::SearchChunk& chunk) {
  config::SearchPoint& priced = chunk.points.emplace_back();
  try {
    const SweepCase& asked = cursor_.at(point);
    refuse_unstated_costs(space_.scenario(), asked.machine);
    const CaseFigures& found = pricer_.price(asked, asked.machine);
    if (const auto missing = missing_metric(space_, found.figures))
      throw InputError("no request has a " + std::string(space_.metrics()[*missing]) + " there");
    priced.bound = number_of(found.bound, chunk.bounds);
    priced.outcome = meets_constraints(space_, asked, found.figures) ? config::Outcome::met : config::Outcome::excluded;
    chunk.all_figures.insert(chunk.all_figures.end(), found.figures.begin(), found.figures.end());
  } catch (const InputError& error) {
    priced = {};
    chunk.all_figures.resize(chunk.points.size() * chunk.num_metrics);
    if (chunk.refusal.empty()) chunk.refusal = without_file(error.what(), space_.scenario().file);
  }
}

bool meets_constraints(const SweepSpace& space, const SweepCase& asked, std::span<const double> figures) {
  const config::Scenario& study = space.scenario();
  const auto figure_of = [&](const std::string& metric) { return figures[space.metric(metric)]; };
  if (!is_admissible(study.objective, figure_of)) return false;
  const auto look_up = [&](const std::string& name) {
    const std::size_t metric = space.metric(name);
    if (metric < figures.size()) return whole_text(figures[metric]);
    const Node* node = config::find_key(asked.scenario.document, name);
    return node == nullptr ? std::string() : node->text;
  };
  return std::ranges::all_of(study.constraints,
                             [&](const config::Condition& condition) { return condition.holds(look_up); });
}

}  // namespace dculab::study
