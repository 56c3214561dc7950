#include "sim/hardware/figure.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/hardware/device_link.hpp"
#include "sim/hardware/machine_fields.hpp"

namespace dculab::sim {
namespace {

using Found = std::optional<Figure>;

template <class Part, std::size_t N>
[[nodiscard]] Found find_member(Part& part, const std::array<Field<Part>, N>& fields, std::string_view name) {
  for (const Field<Part>& field : fields)
    if (field.key == name) return std::visit([&part](auto member) { return Figure(&(part.*member)); }, field.member);
  return std::nullopt;
}

template <class T>
[[nodiscard]] double number_of(const T& figure) {
  if constexpr (requires { figure.value(); })
    return figure.value();
  else
    return static_cast<double>(figure);
}

template <class T>
[[nodiscard]] Found stated(std::optional<T>& figure) {
  return figure ? Found(&*figure) : std::nullopt;
}

template <class T>
[[nodiscard]] Found found(T& figure) {
  return Figure(&figure);
}

template <class T>
[[nodiscard]] Found found(std::optional<T>& figure) {
  return stated(figure);
}

[[nodiscard]] Found find_peak(Machine& machine, std::string_view dtype_name, std::string_view unit) {
  const std::optional<Dtype> dtype = parse_dtype(dtype_name);
  const auto peak = dtype ? machine.peaks.find(*dtype) : machine.peaks.end();
  if (peak == machine.peaks.end()) return std::nullopt;
  if (unit == "matrix") return stated(peak->second.matrix);
  return unit == "vector" ? Found(&peak->second.vector) : std::nullopt;
}

// "int4_int8", "rows_8"
template <class ByRows>
[[nodiscard]] Found find_matmul(std::map<MatmulKernel, ByRows>& matmuls, std::string_view kernel_name,
                                std::string_view rows_text) {
  constexpr std::string_view kRows = "rows_";
  const std::optional<MatmulKernel> kernel = parse_matmul_kernel(kernel_name);
  const auto by_rows = kernel ? matmuls.find(*kernel) : matmuls.end();
  if (by_rows == matmuls.end() || !rows_text.starts_with(kRows)) return std::nullopt;
  int rows = 0;
  std::from_chars(rows_text.data() + kRows.size(), rows_text.data() + rows_text.size(), rows);
  const auto figure = by_rows->second.find(rows);
  return figure == by_rows->second.end() ? std::nullopt : Found(&figure->second);
}

[[nodiscard]] Found find_level(Machine& machine, std::string_view name, std::string_view figure) {
  const auto level = std::find_if(machine.memory.begin(), machine.memory.end(),
                                  [name](const MemoryLevel& each) { return each.name == name; });
  if (level == machine.memory.end()) return std::nullopt;
  if (figure == "channels" && level->channels == 0) return std::nullopt;  // not stated
  return find_member(*level, kLevel, figure);
}

// "kernels_per_op", "host.per_step"
[[nodiscard]] std::string key_of(const StackField& field) {
  return std::string(field.section) + (field.section.empty() ? "" : ".") + std::string(field.name);
}

[[nodiscard]] bool is_key_of(const StackField& field, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return field.section.empty() && key == field.name;
  return key.substr(0, dot) == field.section && key.substr(dot + 1) == field.name;
}

// "reached.matmul_compute", "host.per_step"
[[nodiscard]] Found find_of_stack(Stack& stack, std::string_view key) {
  constexpr std::string_view kReachedBegin = "reached.";
  for (const StackField& field : kStackFigures)
    if (is_key_of(field, key)) return visit_figure(stack, field, [](auto& figure) { return found(figure); });
  if (!key.starts_with(kReachedBegin)) return std::nullopt;
  for (const ReachedField& field : kReached)
    if (field.key == key.substr(kReachedBegin.size()))
      return std::visit([&stack](auto member) { return Figure(&(stack.reached.*member)); }, field.member);
  return std::nullopt;
}

[[nodiscard]] Found find_plain(Machine& machine, std::string_view key) {
  if (key == "compute_units") return Figure(&machine.compute_units);
  if (key == "clock") return Figure(&machine.clock);
  for (const LinkField& field : kLinks)
    if (field.key == key) return std::visit([&](auto member) { return stated(machine.*member); }, field.member);
  return std::nullopt;
}

}  // namespace

std::optional<Figure> find_figure(Machine& machine, std::string_view key) {
  if (key.starts_with(kOfStack)) return find_of_stack(machine.stack, key.substr(kOfStack.size()));
  const std::size_t first = key.find('.'), last = key.rfind('.');
  if (first == std::string_view::npos) return find_plain(machine, key);
  const std::string_view section = key.substr(0, first), figure = key.substr(last + 1);
  const std::string_view between = first == last ? "" : key.substr(first + 1, last - first - 1);
  if (section == "peaks") return find_peak(machine, between, figure);
  if (section == "matmul_rates") return find_matmul(machine.matmul_rates, between, figure);
  if (section == "matmul_dram_shares") return find_matmul(machine.matmul_dram_shares, between, figure);
  if (section == "short_matmul_rates") return find_matmul(machine.short_matmul_rates, between, figure);
  if (section == "short_matmul_dram_shares") return find_matmul(machine.short_matmul_dram_shares, between, figure);
  if (section == "memory") return find_level(machine, between, figure);
  if (first != last) return std::nullopt;
  if (section == "waves" && machine.kind == lower::DeviceKind::gpu) return find_member(machine.waves, kWaves, figure);
  if (section == "overheads") return find_member(machine.overheads, kOverheads, figure);
  if (section == "sustained") return find_member(machine.sustained, kSustained, figure);
  return std::nullopt;
}

std::optional<double> figure_value(const Machine& machine, std::string_view key) {
  const std::optional<Figure> figure = find_figure(const_cast<Machine&>(machine), key);
  if (!figure) return std::nullopt;
  return std::visit([](auto* value) { return number_of(*value); }, *figure);
}

const std::vector<std::string>& stack_figures() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys;
    for (const StackField& field : kStackFigures) keys.push_back("stack." + key_of(field));
    for (const ReachedField& field : kReached) keys.push_back("stack.reached." + std::string(field.key));
    return keys;
  }();
  return kKeys;
}

Stack changed_alike(Stack stack, const Machine& before, const Machine& after) {
  for (const std::string& key : stack_figures()) {
    const std::optional<double> was = figure_value(before, key), is = figure_value(after, key);
    if (!was || !is || *was == *is) continue;
    const Found figure = find_of_stack(stack, std::string_view(key).substr(kOfStack.size()));
    if (!figure) continue;
    std::visit(
        [&](auto* value) {
          using Value = std::decay_t<decltype(*value)>;
          const double own = number_of(*value), changed = own == *was || *was == 0 ? *is : own * *is / *was;
          const bool is_share = std::is_same_v<Value, double> && key.starts_with("stack.reached.");
          *value = Value(is_share ? std::min(changed, 1.0) : changed);
        },
        *figure);
  }
  return stack;
}

const std::string* source_of(const Machine& machine, std::string_view key) {
  const bool of_stack = key.starts_with(kOfStack);
  const auto& sources = of_stack ? machine.stack.sources : machine.sources;
  const auto found = sources.find(std::string(of_stack ? key.substr(kOfStack.size()) : key));
  return found == sources.end() ? nullptr : &found->second;
}

}  // namespace dculab::sim
