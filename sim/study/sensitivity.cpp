#include "sim/study/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "sim/calibration/figure_scale.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] std::set<std::string> figure_keys(const Machine& machine) {
  std::set<std::string> keys;
  for (const auto& [key, source] : machine.sources) keys.insert(key);
  for (const auto& [key, source] : machine.stack.sources) keys.insert(std::string(kOfStack) + key);
  for (const Parameter& parameter : parameters()) keys.emplace(parameter.key);
  return keys;
}

// One figure of the machine, scaled.
class Scaled {
 public:
  Scaled(const Machine& machine, const std::string& key, const Question& question, const SensitivityOptions& options)
      : machine_(machine), key_(key), question_(question), options_(options) {}

  [[nodiscard]] Machine at(double factor) const {
    Machine changed = machine_;
    static_cast<void>(scale_figure(changed, key_, factor));
    return changed;
  }
  [[nodiscard]] Answer answer(double factor) const { return question_(at(factor)); }
  [[nodiscard]] double value(double factor) const { return *figure_value(at(factor), key_); }

  [[nodiscard]] std::optional<Flip> flip(const Answer& base, double farthest) const {
    const double step = std::log(farthest) / kFlipSteps;
    for (int number = 1; number <= kFlipSteps; ++number) {
      const Answer other = answer(std::exp(number * step));
      if (other.choice != base.choice) return bisect(base, (number - 1) * step, number * step, other.choice);
    }
    return std::nullopt;
  }

  // Where the answer is the same one: a jump to another has no slope.
  [[nodiscard]] double elasticity(const Answer& base) const {
    std::vector<std::pair<double, double>> logs;
    for (const double factor : {std::exp(-options_.elasticity_step), std::exp(options_.elasticity_step)})
      if (const Answer other = answer(factor); other.choice == base.choice && other.figure > 0)
        logs.emplace_back(std::log(value(factor)), std::log(other.figure));
    if (logs.empty() || base.figure <= 0) return 0;
    if (logs.size() == 1) logs.emplace_back(std::log(*figure_value(machine_, key_)), std::log(base.figure));
    const double moved = logs[1].first - logs[0].first;
    return moved == 0 ? 0 : (logs[1].second - logs[0].second) / moved;
  }

 private:
  // `same` and `other` are logarithms of factors; at `other` the answer is `choice`.
  [[nodiscard]] Flip bisect(const Answer& base, double same, double other, std::string choice) const {
    while (std::abs(other - same) > options_.flip_resolution) {
      const double middle = (same + other) / 2;
      Answer found = answer(std::exp(middle));
      if (found.choice == base.choice) {
        same = middle;
      } else {
        other = middle;
        choice = std::move(found.choice);
      }
    }
    const double reached = value(std::exp(other));
    return {reached / *figure_value(machine_, key_), reached, std::move(choice)};
  }

  const Machine& machine_;
  const std::string& key_;
  const Question& question_;
  const SensitivityOptions& options_;
};

[[nodiscard]] double nearest(const Sensitivity& sensitivity) {
  double distance = std::numeric_limits<double>::infinity();
  for (const auto* flip : {&sensitivity.down, &sensitivity.up})
    if (*flip) distance = std::min(distance, std::abs(std::log((*flip)->factor)));
  return distance;
}

}  // namespace

std::vector<Sensitivity> sensitivities(const Machine& machine, const Question& question, double within,
                                       const SensitivityOptions& options) {
  const Answer base = question(machine);
  std::vector<Sensitivity> found;
  const std::set<std::string> keys = figure_keys(machine);
  std::size_t done = 0;
  for (const std::string& key : keys) {
    if (options.progress) options.progress(static_cast<double>(done++) / static_cast<double>(keys.size()));
    Machine probe = machine;
    const std::optional<double> value = figure_value(machine, key);
    if (!value || *value <= 0 || !scale_figure(probe, key, within)) continue;
    const Scaled scaled(machine, key, question, options);
    const Answer low = scaled.answer(1 / within), high = question(probe);
    const auto is_base = [&base](const Answer& each) {
      return each.choice == base.choice && each.figure == base.figure;
    };
    if (is_base(low) && is_base(high)) continue;
    found.push_back({key, *value, scaled.elasticity(base), scaled.flip(base, 1 / within), scaled.flip(base, within)});
  }
  std::ranges::stable_sort(
      found, {}, [](const Sensitivity& each) { return std::pair(nearest(each), -std::abs(each.elasticity)); });
  return found;
}

}  // namespace dculab::sim
