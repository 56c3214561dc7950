#include "study/decide/group_choice.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "model/kv/kv_bytes.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/study/pareto.hpp"

namespace dculab::study {
namespace {

constexpr const char* kHeadsKey = "model.num_key_value_heads";
constexpr const char* kRate = "output_tokens_per_second";

// What nothing else beats in speed, memory and accuracy at once.
[[nodiscard]] std::vector<bool> front_of(const GroupChoice& choices) {
  sim::ParetoFront front;
  for (std::size_t index = 0; index < choices.costs.size(); ++index)
    if (choices.costs[index].fits() && choices.losses[index])
      front.offer(index, std::array{-choices.evaluated[index].figure, kv_bytes(choices.costs[index]).value(),
                                    *choices.losses[index]});
  std::vector<bool> on_front(choices.costs.size());
  for (const sim::ParetoFront::Point& point : front.points()) on_front[point.number] = true;
  return on_front;
}

void choose(GroupChoice& choices, const config::AccuracyChoice& accuracy) {
  std::vector<Evaluated> tolerated = choices.evaluated;
  for (std::size_t index = 0; index < tolerated.size(); ++index)
    if (!choices.losses[index] || *choices.losses[index] > accuracy.tolerance) tolerated[index].figure = 0;
  choices.verdict = decide(tolerated, {.given_up = accuracy.speed_tie});
  if (!choices.verdict) return;
  double fastest = choices.evaluated[choices.verdict->chosen].figure;
  for (std::size_t index = 0; index < tolerated.size(); ++index)
    if (choices.losses[index] && tolerated[index].figure == 0 && choices.evaluated[index].figure > fastest) {
      fastest = choices.evaluated[index].figure;
      choices.refused = index;
    }
}

}  // namespace

Bytes kv_bytes(const VariantCost& cost) { return kv_bytes_per_token(cost.model, cost.options.kv_cache_dtype); }

const GroupAccuracy* accuracy_of(const AccuracyCurve& curve, const VariantCost& cost) {
  const auto found = curve.by_group.find(cost.model.heads().group_size());
  return found == curve.by_group.end() ? nullptr : &found->second;
}

void require_swept_heads(const config::Scenario& scenario) {
  if (scenario.sweep.size() != 1 || scenario.sweep.front().key != kHeadsKey)
    throw InputError(scenario.file,
                     "accuracy: weighs KV heads, so sweep must be over " + std::string(kHeadsKey) + " alone");
  if (scenario.workload.kind != config::WorkloadKind::serving)
    throw InputError(scenario.file,
                     "accuracy: speed is that of the batch that fits; give workload.requests, "
                     "prompt_tokens and output_tokens");
}

GroupChoice choose_group(const config::Scenario& scenario, const AccuracyCurve& curve, const sim::Machine& machine) {
  GroupChoice choices{
      .machine = machine.name, .costs = {}, .evaluated = {}, .losses = {}, .front = {}, .verdict = {}, .refused = {}};
  for (const config::SweepPoint& point : config::sweep_points(scenario))
    choices.costs.push_back(cost_of(point.scenario, machine));
  std::sort(choices.costs.begin(), choices.costs.end(), [](const VariantCost& a, const VariantCost& b) {
    return a.model.heads().num_key_value_heads > b.model.heads().num_key_value_heads;
  });
  for (const VariantCost& cost : choices.costs) {
    Evaluated evaluated{.value = std::to_string(cost.model.heads().num_key_value_heads), .figure = 0};
    if (cost.fits()) {
      evaluated.figure = cost.figures.at(kRate);
      evaluated.shifts = sim::prior_shifts(machine, [&cost](const sim::Machine& moved) {
        return Seconds(1 / sim::price_run(moved, cost.measured_run).value());
      });
    }
    choices.evaluated.push_back(std::move(evaluated));
    const GroupAccuracy* accuracy = accuracy_of(curve, cost);
    choices.losses.push_back(accuracy ? std::optional(accuracy->loss) : std::nullopt);
  }
  choices.front = front_of(choices);
  choose(choices, *scenario.accuracy);
  return choices;
}

std::optional<std::vector<sim::InputSensitivity>> input_sensitivities_of(const GroupChoice& choices) {
  std::vector<const sim::MeasuredRun*> measured_runs;
  for (const VariantCost& cost : choices.costs)
    if (cost.fits()) measured_runs.push_back(&cost.measured_run);
  return sim::input_sensitivities(choices.costs.front().machine, measured_runs);
}

GroupStudy study_groups(const config::Scenario& scenario, const std::vector<sim::Machine>& machines) {
  require_swept_heads(scenario);
  GroupStudy study{.curve = measured_accuracy(scenario), .machines = {}};
  for (const sim::Machine& machine : machines) study.machines.push_back(choose_group(scenario, study.curve, machine));
  return study;
}

}  // namespace dculab::study
