#include "sim/study/recommend.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace dculab::sim {
namespace {

[[nodiscard]] std::set<std::size_t> workloads_of(std::span<const ChoiceTime> times) {
  std::set<std::size_t> workloads;
  for (const ChoiceTime& time : times) workloads.insert(time.workload);
  return workloads;
}

[[nodiscard]] std::vector<ChoiceTime> only(std::span<const ChoiceTime> times, std::size_t workload) {
  std::vector<ChoiceTime> selected;
  std::copy_if(times.begin(), times.end(), std::back_inserter(selected),
               [workload](const ChoiceTime& time) { return time.workload == workload; });
  return selected;
}

[[nodiscard]] Seconds time_of(std::span<const ScoredChoice> ranked, Choice choice) {
  return std::find_if(ranked.begin(), ranked.end(), [choice](const auto& each) { return each.choice == choice; })
      ->seconds;
}

[[nodiscard]] std::optional<Regret> overall_regret(std::span<const ChoiceTime> predicted,
                                                   std::span<const ChoiceTime> measured) {
  const std::vector<ScoredChoice> by_prediction = rank_choices(predicted);
  const std::vector<ScoredChoice> by_measurement = rank_choices(measured);
  if (by_prediction.empty() || by_measurement.empty()) return std::nullopt;
  Regret regret;
  regret.predicted_best = by_prediction.front().choice;
  regret.measured_best = by_measurement.front().choice;
  const double taken = time_of(by_measurement, regret.predicted_best) / by_measurement.front().seconds;
  regret.regret = std::max(0.0, taken - 1.0);  // of measured ties the usual size stands first, not the fastest
  return regret;
}

}  // namespace

std::vector<ScoredChoice> rank_choices(std::span<const ChoiceTime> times) {
  std::map<Choice, std::map<std::size_t, double>> logs;
  for (const ChoiceTime& time : times) logs[time.choice][time.workload] = std::log(time.seconds.value());
  const std::size_t num_workloads = workloads_of(times).size();
  std::vector<ScoredChoice> ranked;
  for (const auto& [choice, by_workload] : logs) {
    if (by_workload.size() != num_workloads) continue;
    double sum = 0;
    for (const auto& [workload, value] : by_workload) sum += value;
    ranked.push_back({choice, Seconds(std::exp(sum / static_cast<double>(num_workloads)))});
  }
  // std::map has them by block size within KV heads already, so a stable sort leaves the smaller block first.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const ScoredChoice& a, const ScoredChoice& b) { return a.seconds.value() < b.seconds.value(); });
  const auto tied = std::find_if(ranked.begin(), ranked.end(), [&](const ScoredChoice& each) {
    return each.seconds > ranked.front().seconds * (1 + kStepTie);
  });
  std::stable_sort(ranked.begin(), tied, [](const ScoredChoice& a, const ScoredChoice& b) {
    return a.choice.block_size < b.choice.block_size;
  });
  return ranked;
}

std::optional<Regret> decision_regret(std::span<const ChoiceTime> predicted, std::span<const ChoiceTime> measured) {
  std::optional<Regret> result = overall_regret(predicted, measured);
  if (!result) return result;
  for (const std::size_t workload : workloads_of(measured))
    if (const auto single = overall_regret(only(predicted, workload), only(measured, workload)))
      result->worst_single = std::max(result->worst_single, single->regret);
  return result;
}

}  // namespace dculab::sim
