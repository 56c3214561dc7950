#include "study/decide/best_variants.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "sim/calibration/confidence.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::study {
namespace {

using Choices = std::vector<config::Override>;
using Question = std::pair<Choices, std::vector<const ComparedPoint*>>;

[[nodiscard]] std::vector<Question> by_question(const std::vector<ComparedPoint>& points) {
  std::vector<Question> questions;
  for (const ComparedPoint& point : points) {
    Choices choices;
    std::ranges::copy_if(point.point->choices, std::back_inserter(choices), is_asked);
    auto found = std::ranges::find(questions, choices, &Question::first);
    if (found == questions.end()) found = questions.insert(found, {choices, {}});
    found->second.push_back(&point);
  }
  return questions;
}

// More is better; 0: memory has no room for it.
[[nodiscard]] double figure_of(const VariantCost& cost, const std::string& metric) {
  if (!cost.fits() || !cost.has_room) return 0;
  return metric == "step_time" ? 1 / cost.figures.at(metric) : cost.figures.at(metric);
}

// A variant at the best point of a question.
struct Contestant {
  const ComparedPoint* point;
  Evaluated evaluated;
};

[[nodiscard]] Contestant contestant(const Question& question, std::size_t variant, const config::Scenario& scenario) {
  const std::string metric = main_metric(scenario);
  const ComparedPoint* best = *std::ranges::max_element(
      question.second, {}, [&](const ComparedPoint* point) { return figure_of(point->costs[variant], metric); });
  const VariantCost& cost = best->costs[variant];
  const config::Compare& compare = *scenario.compare;
  Contestant result{best,
                    {.value = variant == 0 ? compare.baseline : compare.variants[variant - 1].name,
                     .figure = figure_of(cost, metric)}};
  if (cost.fits())
    result.evaluated.shifts = sim::prior_shifts(cost.machine, [&cost](const sim::Machine& moved) {
      return Seconds(1 / sim::price_run(moved, cost.measured_run).value());
    });
  return result;
}

}  // namespace

bool is_asked(const config::Override& choice) {
  const std::string& key = choice.first;
  return key != "kv_cache.block_size" && !key.starts_with("attention.");
}

std::vector<BestVariant> best_variants(const std::vector<ComparedPoint>& points, const config::Scenario& scenario,
                                       const sim::Machine& machine) {
  const auto is_elsewhere = [&machine](const VariantCost& cost) { return !is_run_by(cost, machine) || cost.service; };
  const auto runs_elsewhere = [&](const ComparedPoint& point) {
    return std::ranges::any_of(point.costs, is_elsewhere);
  };
  if (!scenario.compare->reported.empty() || std::ranges::any_of(points, runs_elsewhere)) return {};
  std::vector<BestVariant> best;
  for (const Question& question : by_question(points)) {
    std::vector<const ComparedPoint*> at;
    std::vector<Evaluated> evaluated;
    for (std::size_t variant = 0; variant <= scenario.compare->variants.size(); ++variant) {
      Contestant each = contestant(question, variant, scenario);
      at.push_back(each.point);
      evaluated.push_back(std::move(each.evaluated));
    }
    const std::optional<Verdict> verdict = decide(evaluated, {});
    if (verdict) best.push_back({at[verdict->chosen]->point->choices, std::move(evaluated), *verdict});
  }
  return best;
}

}  // namespace dculab::study
