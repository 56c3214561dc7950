#include "config/figure_change.hpp"

#include "config/machine_fields.hpp"
#include "sim/calibration/figure_scale.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kTimes = " x";

// "1.2 x"
bool scale(sim::Machine& machine, const std::string& key, MapReader& reader, const Node& change) {
  Node number = change;
  number.text.resize(number.text.size() - kTimes.size());
  double factor = 0;
  reader.read(number, factor, above(0));
  return factor == 0 || factor == 1 || sim::scale_figure(machine, key, factor);
}

// Where a scaled figure has come to. One that nobody states stays 0.
template <class T>
void check_scaled(const std::string& key, MapReader& reader, const Node& change, const T& figure) {
  constexpr bool has_unit = requires { figure.value(); };
  std::optional<Dimension> dimension;
  double value = 0;
  if constexpr (has_unit) {
    dimension = DimensionOf<T>::value;
    value = figure.value();
  } else {
    value = figure;
  }
  if (const Range range = allowed_figure<T>(key); value != 0 && !contains(range, value))
    reader.complain(change, reader.path_to(change.key) + ": '" + change.text + "' takes it out of range; it must be " +
                                describe(range, dimension));
}

}  // namespace

bool is_relative(const Node& change) { return change.text.ends_with(kTimes); }

void change_figure(sim::Machine& machine, const std::string& key, MapReader& reader, const Node& change) {
  const bool relative = is_relative(change);
  if (relative && !scale(machine, key, reader, change))
    return reader.complain(change,
                           reader.path_to(change.key) + ": no figure of " + machine.name + " that can be scaled");
  std::visit(
      [&](auto* target) {
        if (relative)
          check_scaled(key, reader, change, *target);
        else
          reader.read(change, *target, allowed_figure<std::remove_pointer_t<decltype(target)>>(key));
      },
      *sim::find_figure(machine, key));
}

}  // namespace dculab::config
