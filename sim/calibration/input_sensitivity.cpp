#include "sim/calibration/input_sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/calibration/figure_scale.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::sim {
namespace {

// Nothing when the figure cannot be scaled.
[[nodiscard]] std::optional<double> change_of(const Machine& machine, const std::string& key, double factor,
                                              const Prices& prices, const std::vector<Seconds>& base) {
  Machine changed = machine;
  if (!scale_figure(changed, key, factor, Following::unstated)) return std::nullopt;
  const std::vector<Seconds> times = prices(changed);
  double sum = 0;
  for (std::size_t index = 0; index < base.size(); ++index) sum += std::abs(times[index] / base[index] - 1);
  return base.empty() ? 0 : sum / static_cast<double>(base.size());
}

}  // namespace

std::vector<std::string> assumed_keys(const Machine& machine) {
  std::vector<std::string> keys;
  for (const std::string& key : machine.assumed)
    if (!key.starts_with("reached.")) keys.push_back(key);  // what is taken of them, the stack has
  for (const auto& [key, source] : machine.stack.sources)
    if (source.starts_with("inferred: ") || source.starts_with("assumed: "))
      keys.push_back(std::string(kOfStack) + key);
  for (const Parameter& parameter : parameters())
    if (source_of(machine, parameter.key) == nullptr && !is_known(machine, parameter)) keys.emplace_back(parameter.key);
  return keys;
}

std::vector<InputSensitivity> input_sensitivities(const Machine& machine, const Prices& prices) {
  const std::vector<Seconds> base = prices(machine);
  std::vector<InputSensitivity> found;
  for (const std::string& key : assumed_keys(machine)) {
    const auto less = change_of(machine, key, 1 - kSensitivityStep, prices, base);
    const auto more = change_of(machine, key, 1 + kSensitivityStep, prices, base);
    if (less && more) found.push_back({key, std::max(*less, *more)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const InputSensitivity& a, const InputSensitivity& b) { return a.change > b.change; });
  return found;
}

}  // namespace dculab::sim
