#include "config/machine_figure.hpp"

#include "config/machine_fields.hpp"
#include "config/machine_file.hpp"
#include "sim/calibration/figure_scale.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

constexpr std::string_view kTimes = " x";

// "1.2 x"
bool scale(sim::Machine& machine, MapReader& reader, const Node& node) {
  Node number = node;
  number.text.resize(number.text.size() - kTimes.size());
  double factor = 0;
  reader.read(number, factor, above(0));
  return factor == 0 || factor == 1 || sim::scale_figure(machine, node.key, factor);
}

// Where a scaled figure has come to. One that the machine does not state stays 0.
template <class T>
void check_scaled(MapReader& reader, const Node& node, const T& figure) {
  constexpr bool has_unit = requires { figure.value(); };
  std::optional<Dimension> dimension;
  double value = 0;
  if constexpr (has_unit) {
    dimension = DimensionOf<T>::value;
    value = figure.value();
  } else {
    value = figure;
  }
  if (const Range range = allowed_figure<T>(node.key); value != 0 && !contains(range, value))
    reader.complain(node, "machine." + node.key + ": '" + node.text + "' takes it out of range; it must be " +
                              describe(range, dimension));
}

void set_figure(sim::Machine& machine, MapReader& reader, const Node& node) {
  const std::optional<sim::Figure> figure = sim::find_figure(machine, node.key);
  const bool relative = node.text.ends_with(kTimes);
  if (!figure || (relative && !scale(machine, reader, node)))
    return reader.complain(node, "machine." + node.key + ": no figure of " + machine.name +
                                     (figure ? " that can be scaled" : "; `dculab show` lists them"));
  const auto read = [&](auto* target) {
    if (relative)
      check_scaled(reader, node, *target);
    else
      reader.read(node, *target, allowed_figure<std::remove_pointer_t<decltype(target)>>(node.key));
  };
  std::visit(read, *figure);
  cite(machine, node.key, sim::Evidence::assumed, "set by the scenario");
}

}  // namespace

void set_figures(sim::Machine& machine, std::span<const Node> figures, ProblemList& problems) {
  if (figures.empty()) return;
  MapReader reader(nullptr, "machine", problems);
  for (const Node& figure : figures) set_figure(machine, reader, figure);
  for (const std::string& problem : sim::problems(machine)) problems.add(figures.front(), problem);
}

}  // namespace dculab::config
