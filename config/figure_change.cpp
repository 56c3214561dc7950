#include "config/figure_change.hpp"

#include "sim/calibration/figure_scale.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kTimes = " x";

// Of "1.2 x"; 0 where it is none, which is reported.
double factor_of(MapReader& reader, const Node& change) {
  Node number = change;
  number.text.resize(number.text.size() - kTimes.size());
  double factor = 0;
  reader.read(number, factor, above(0));
  return factor;
}

// Where the figure would come to.
template <class T>
bool is_allowed(Bounds bounds, MapReader& reader, const Node& change, double scaled) {
  constexpr bool has_unit = requires(T figure) { figure.value(); };
  std::optional<Dimension> dimension;
  if constexpr (has_unit) dimension = DimensionOf<T>::value;
  if (contains(bounds, scaled)) return true;
  reader.complain(change, reader.path_to(change.key) + ": '" + change.text + "' takes it out of range; it must be " +
                              describe(bounds, dimension));
  return false;
}

}  // namespace

bool is_relative(const Node& change) { return change.text.ends_with(kTimes); }

void change_figure(sim::Machine& machine, const std::string& key, MapReader& reader, const Node& change) {
  const Bounds bounds = sim::find_figure_info(key)->bounds;
  const double factor = is_relative(change) ? factor_of(reader, change) : 0;
  std::visit(
      [&]<class T>(T* target) {
        if (!is_relative(change)) return reader.read(change, *target, bounds);
        const double before = *sim::figure_value(machine, key);
        if (factor == 0 || factor == 1 || before == 0) return;  // an unstated figure stays 0
        if (is_allowed<T>(bounds, reader, change, before * factor) && !sim::scale_figure(machine, key, factor))
          reader.complain(change,
                          reader.path_to(change.key) + ": no figure of " + machine.name + " that can be scaled");
      },
      *sim::find_figure(machine, key));
}

}  // namespace dculab::config
