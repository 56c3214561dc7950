#include "study/decide/compared_models.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "sim/memory/capacity.hpp"

namespace dculab::study {
namespace {

constexpr const char* kBatchAxis = "workload.batch";
constexpr const char* kBlockAxis = "kv_cache.block_size";

[[nodiscard]] bool names_a_model(const std::string& key) { return key == "model" || key == "model.name"; }

// One model at one point of the other axes: the points of its batches and block sizes.
struct PointsOfModel {
  std::string model;
  std::vector<config::Override> others;
  std::vector<const config::SweepPoint*> sweep{};
  std::vector<PricedPoint> priced{};
};

[[nodiscard]] PointsOfModel without_points(const config::SweepPoint& point) {
  PointsOfModel named;
  for (const auto& [key, value] : point.choices) {
    if (names_a_model(key))
      named.model = value;
    else if (key != kBatchAxis && key != kBlockAxis)
      named.others.emplace_back(key, value);
  }
  return named;
}

[[nodiscard]] std::vector<PointsOfModel> by_model(const std::vector<config::SweepPoint>& sweep,
                                                  const std::vector<PricedPoint>& priced) {
  std::vector<PointsOfModel> groups;
  for (std::size_t index = 0; index < priced.size(); ++index) {
    PointsOfModel named = without_points(sweep[index]);
    auto found = std::ranges::find_if(groups, [&named](const PointsOfModel& group) {
      return group.model == named.model && group.others == named.others;
    });
    if (found == groups.end()) found = groups.insert(groups.end(), std::move(named));
    found->sweep.push_back(&sweep[index]);
    found->priced.push_back(priced[index]);
  }
  return groups;
}

[[nodiscard]] double rate_when_full(const ComparedModel& model, const Batch& batch) {
  if (model.max_sequences <= 0) return 0;
  const double tokens = static_cast<double>(batch.num_tokens()) / static_cast<double>(batch.sequences.size()) *
                        static_cast<double>(model.max_sequences);
  return tokens / model.step_time(static_cast<int>(model.max_sequences)).value();
}

// The point of `at` with another batch.
[[nodiscard]] std::vector<StudyPoint> with_batch(const config::Scenario& scenario, config::SweepPoint at, int batch,
                                                 const sim::Machine& machine) {
  config::apply_axis(at.scenario, kBatchAxis, std::to_string(batch));
  return study_points(scenario, machine, {at});
}

// What the two refer to must outlive them.
[[nodiscard]] std::function<Seconds(int)> step_time_of(const config::Scenario& scenario, const config::SweepPoint& at,
                                                       const sim::Machine& machine) {
  return [&scenario, &at, &machine](int batch) {
    return price_points(with_batch(scenario, at, batch, machine), machine).front().price.seconds;
  };
}

[[nodiscard]] std::function<Evaluated(int)> evaluated_step_of(const config::Scenario& scenario,
                                                              const config::SweepPoint& at,
                                                              const sim::Machine& machine) {
  return [&scenario, &at, &machine](int batch) {
    const std::vector<StudyPoint> points = with_batch(scenario, at, batch, machine);
    return evaluated(price_points(points, machine), machine).begin()->second;
  };
}

[[nodiscard]] std::vector<int> tied_blocks(const std::optional<StepDecision>& decision, int block_size) {
  if (!decision) return {block_size};
  std::vector<int> tied;
  for (std::size_t index = 0; index < decision->blocks.choices.size(); ++index)
    if (decision->blocks.verdict.is_tied(index)) tied.push_back(decision->blocks.choices[index].block_size);
  std::ranges::sort(tied);
  return tied;
}

[[nodiscard]] SweptModel with_best_block(const config::Scenario& scenario, const PointsOfModel& points,
                                         const std::vector<int>& batches, const sim::Machine& machine) {
  const auto decision =
      step_decision(evaluated(points.priced, machine), heads_question(points.sweep.front()->scenario), machine);
  const auto has_block = [&decision](const PricedPoint& priced) {
    return !decision || priced.point->choice == decision->choice;
  };
  const auto chosen = std::ranges::find_if(points.priced, has_block);
  const StudyPoint& point = *chosen->point;
  const config::SweepPoint& at = *points.sweep[static_cast<std::size_t>(chosen - points.priced.begin())];
  const sim::Capacity capacity = sim::capacity(machine_of(point, machine, machine), point.model, point.options,
                                               point.batch.sequences.front().context_tokens());
  const std::int64_t room = std::min<std::int64_t>(capacity.max_sequences, point.options.max_num_seqs);
  SweptModel model{.compared = {points.model, room, step_time_of(scenario, at, machine)},
                   .block_size = point.options.block_size,
                   .tied_blocks = tied_blocks(decision, point.options.block_size),
                   .chose_block = decision && decision->blocks.choices.size() > 1,
                   .evaluated_step = evaluated_step_of(scenario, at, machine),
                   .kv_bytes_per_token = kv_bytes_per_token(point.model, point.options.kv_cache_dtype),
                   .kv_cache_tokens = capacity.max_sequences * point.batch.sequences.front().context_tokens()};
  for (const int batch : batches)
    model.steps.push_back(batch > room ? std::nullopt : std::optional(model.compared.step_time(batch)));
  model.tokens_per_second = rate_when_full(model.compared, point.batch);
  return model;
}

void add_order(ModelComparison& comparison, const std::vector<int>& batches) {
  std::vector<ComparedModel> compared;
  for (const SweptModel& model : comparison.models) {
    compared.push_back(model.compared);
    if (model.compared.max_sequences < batches.back()) comparison.has_short_model = true;
  }
  const auto evaluated_at = [&comparison](const std::string& name, int batch) {
    const auto is_named = [&name](const SweptModel& model) { return model.compared.name == name; };
    return std::ranges::find_if(comparison.models, is_named)->evaluated_step(batch);
  };
  for (OrderChange& change : order_changes(compared, batches)) {
    const Cost lead = difference(evaluated_at(change.slower, change.last), evaluated_at(change.faster, change.last));
    comparison.changes.push_back({std::move(change), lead});
  }
}

}  // namespace

bool sweeps_models(const config::Scenario& scenario) {
  return std::ranges::any_of(scenario.sweep, [](const config::SweepAxis& axis) { return names_a_model(axis.key); });
}

std::vector<int> swept_batches(const std::vector<PricedPoint>& priced) {
  std::set<int> batches;
  for (const PricedPoint& each : priced) batches.insert(static_cast<int>(each.point->batch.sequences.size()));
  return {batches.begin(), batches.end()};
}

std::vector<ModelComparison> compare_models(const config::Scenario& scenario,
                                            const std::vector<config::SweepPoint>& sweep,
                                            const std::vector<PricedPoint>& priced, const std::vector<int>& batches,
                                            const sim::Machine& machine) {
  std::vector<ModelComparison> comparisons;
  for (const PointsOfModel& points : by_model(sweep, priced)) {
    auto found = std::ranges::find(comparisons, points.others, &ModelComparison::others);
    if (found == comparisons.end()) found = comparisons.insert(comparisons.end(), {.others = points.others});
    found->models.push_back(with_best_block(scenario, points, batches, machine));
  }
  for (ModelComparison& comparison : comparisons) add_order(comparison, batches);
  return comparisons;
}

}  // namespace dculab::study
