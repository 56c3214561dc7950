#include "sim/calibration/figure_scale.hpp"

#include <algorithm>
#include <cmath>

#include "sim/calibration/parameters.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::sim {
namespace {

void scale(int& count, double factor) {
  constexpr double kLargest = 0x1p30;
  const double scaled = std::min(count * factor, kLargest);
  count = factor < 1 ? std::max(1, std::min(count - 1, static_cast<int>(std::floor(scaled))))
                     : std::max(count + 1, static_cast<int>(std::ceil(scaled)));
}

template <class T>
void scale(T& figure, double factor) {
  figure = figure * factor;
}

}  // namespace

bool scale_figure(Machine& machine, std::string_view key, double factor, Following following) {
  for (const Parameter& parameter : parameters()) {
    if (parameter.key != key) continue;
    set(machine, parameter, get(machine, parameter) * factor);
    return true;
  }
  const FigureInfo* info = find_figure_info(key);
  const std::optional<Figure> figure = find_figure(machine, key);
  if (info == nullptr || !figure || info->scaling == Scaling::none) return false;
  const double before = *figure_value(machine, key);
  if (info->scaling == Scaling::power_of_two) factor = factor < 1 ? 0.5 : 2.0;
  std::visit([factor](auto* value) { scale(*value, factor); }, *figure);
  if (is_driver(key)) follow(machine, key, before, following);
  if (info->scaling == Scaling::to_all) {
    double& share = *std::get<double*>(*figure);
    share = std::min(share, 1.0);
  }
  return true;
}

}  // namespace dculab::sim
