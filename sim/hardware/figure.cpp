#include "sim/hardware/figure.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::sim {
namespace {

using Found = std::optional<Figure>;

template <class T>
[[nodiscard]] Found found(T& figure) {
  return Figure(&figure);
}

template <class T>
[[nodiscard]] Found found(std::optional<T>& figure) {
  return figure ? Found(&*figure) : std::nullopt;
}

template <class Part, std::size_t N>
[[nodiscard]] Found find_member(Part& part, const std::array<FigureField<Part>, N>& fields, std::string_view name) {
  for (const FigureField<Part>& field : fields)
    if (field.info.key == name) return visit_figure(part, field, [](auto& figure) { return found(figure); });
  return std::nullopt;
}

template <class Part, std::size_t N>
[[nodiscard]] const FigureInfo* find_info(const std::array<FigureField<Part>, N>& fields, std::string_view name) {
  for (const FigureField<Part>& field : fields)
    if (field.info.key == name) return &field.info;
  return nullptr;
}

// What an optional lacks begins at 0. False where there is no such member.
template <class Part, std::size_t N>
[[nodiscard]] bool begin_member(Part& part, const std::array<FigureField<Part>, N>& fields, std::string_view name) {
  for (const FigureField<Part>& field : fields) {
    if (field.info.key != name) continue;
    visit_figure(part, field, [](auto& figure) {
      if constexpr (requires { figure.emplace(); })
        if (!figure) figure.emplace();
    });
    return true;
  }
  return false;
}

[[nodiscard]] Found find_peak(Machine& machine, std::string_view dtype_name, std::string_view unit) {
  const std::optional<Dtype> dtype = parse_dtype(dtype_name);
  const auto peak = dtype ? machine.peaks.find(*dtype) : machine.peaks.end();
  return peak == machine.peaks.end() ? std::nullopt : find_member(peak->second, kPeak, unit);
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

constexpr std::string_view kReachedBegin = "reached.";

// "reached.matmul_compute", "host.per_step"
[[nodiscard]] Found find_of_stack(Stack& stack, std::string_view key) {
  for (const StackField& field : kStackFigures)
    if (field.info.key == key) return visit_figure(stack, field, [](auto& figure) { return found(figure); });
  if (!key.starts_with(kReachedBegin)) return std::nullopt;
  return find_member(stack.reached, kReached, key.substr(kReachedBegin.size()));
}

[[nodiscard]] const FigureInfo* info_of_stack(std::string_view key) {
  for (const StackField& field : kStackFigures)
    if (field.info.key == key) return &field.info;
  return key.starts_with(kReachedBegin) ? find_info(kReached, key.substr(kReachedBegin.size())) : nullptr;
}

[[nodiscard]] Found find_plain(Machine& machine, std::string_view key) {
  const Found design = find_member(machine, kDesign, key);
  if (design) return design;
  const Found link = find_member(machine, kLinks, key);
  return link ? link : find_member(machine, kPrice, key);
}

[[nodiscard]] const FigureInfo* info_of_plain(std::string_view key) {
  const FigureInfo* design = find_info(kDesign, key);
  if (design != nullptr) return design;
  const FigureInfo* link = find_info(kLinks, key);
  return link != nullptr ? link : find_info(kPrice, key);
}

[[nodiscard]] const FigureInfo* info_of_matmuls(std::string_view section) {
  for (const FigureInfo* info : kMatmuls)
    if (info->key == section) return info;
  return nullptr;
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
  if (section == "power") return find_member(machine.power, kPower, figure);
  return std::nullopt;
}

bool begin_cost(Machine& machine, std::string_view key) {
  constexpr std::string_view kPowerBegin = "power.";
  if (!key.starts_with(kPowerBegin)) return begin_member(machine, kPrice, key);
  return begin_member(machine.power, kPower, key.substr(kPowerBegin.size()));
}

const FigureInfo* find_figure_info(std::string_view key) {
  if (key.starts_with(kOfStack)) return info_of_stack(key.substr(kOfStack.size()));
  const std::size_t first = key.find('.');
  if (first == std::string_view::npos) return info_of_plain(key);
  const std::string_view section = key.substr(0, first), figure = key.substr(key.rfind('.') + 1);
  if (section == "clock_states") return &kClockState;
  if (section == "peaks") return find_info(kPeak, figure);
  if (section == "memory") return find_info(kLevel, figure);
  if (section == "waves") return find_info(kWaves, figure);
  if (section == "overheads") return find_info(kOverheads, figure);
  if (section == "sustained") return find_info(kSustained, figure);
  if (section == "power") return find_info(kPower, figure);
  return section == "reached" ? find_info(kReached, figure) : info_of_matmuls(section);
}

std::optional<double> figure_value(const Machine& machine, std::string_view key) {
  const std::optional<Figure> figure = find_figure(const_cast<Machine&>(machine), key);
  if (!figure) return std::nullopt;
  return std::visit([](auto* value) { return number_of(*value); }, *figure);
}

const std::vector<std::string>& stack_figures() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys;
    for (const StackField& field : kStackFigures) keys.push_back("stack." + std::string(field.info.key));
    for (const FigureField<Reached>& field : kReached) keys.push_back("stack.reached." + std::string(field.info.key));
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
