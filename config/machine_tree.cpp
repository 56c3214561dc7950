// What a machine file may have.
#include <string>
#include <utility>
#include <vector>

#include "config/calibration_reader.hpp"
#include "config/derivation.hpp"
#include "config/figure_keys.hpp"
#include "config/machine_keys.hpp"
#include "sim/hardware/machine_fields.hpp"
#include "sim/hardware/stack_fields.hpp"

namespace dculab::config {
namespace {

[[nodiscard]] std::vector<std::string> machine_evidence() {
  std::vector<std::string> words;
  for (const auto& [word, evidence] : kEvidence) words.emplace_back(word);
  return words;
}

[[nodiscard]] ValueKind rate_kind(const DerivationField& field) {
  return field.dimension ? ValueKind::quantity : ValueKind::number;
}

[[nodiscard]] std::string rate_unit(const DerivationField& field) {
  if (!field.dimension) return "clocks";
  if (*field.dimension == Dimension::flop) return std::string(unit::flop);
  return *field.dimension == Dimension::bytes ? std::string(unit::bytes) : "B/s";
}

// A figure that may follow others: those that any of `kinds` may.
[[nodiscard]] FileKey following(FileKey figure, std::initializer_list<FigureKind> kinds) {
  FileValue& map = figure.values.front();
  map.keys.front().is_required = false;
  map.one_of = {"value"};
  for (const DerivationField& field : kDerivations) {
    if (std::ranges::find(kinds, field.figure) == kinds.end()) continue;
    if (std::ranges::find(map.one_of, field.key) != map.one_of.end()) continue;
    FileKey rate{.key = std::string(field.key), .meaning = std::string(field.words)};
    rate.values = {{.kind = rate_kind(field), .bounds = field.bounds, .unit = rate_unit(field)}};
    map.keys.push_back(std::move(rate));
    map.one_of.emplace_back(field.key);
  }
  return figure;
}

[[nodiscard]] FileKey peaks_key() {
  FileKey peaks = map_key("peaks", "FLOP rates by dtype; `f32` must be there", {});
  std::vector<FileKey> figures;
  for (FileKey& figure : figure_keys(sim::kPeak, machine_evidence()))
    figures.push_back(following(std::move(figure), {FigureKind::peak}));
  peaks.values = {
      map_of({many_keys("<dtype>", "^(f32|f16|bf16|int8|fp8_e4m3|fp8_e5m2)$", map_of(std::move(figures)))})};
  peaks.values.front().one_of = {"f32"};
  peaks.is_required = true;
  return peaks;
}

[[nodiscard]] FileKey matmuls_key(const sim::FigureInfo& info) {
  FileKey rows = figure_key(info, machine_evidence());
  rows.key = "rows_<m>";
  rows.pattern = "^rows_[1-9][0-9]*$";
  return map_key(
      std::string(info.key), "of matmul kernels, by weights, activations and rows",
      {many_keys("<weights>_<activations>", "^[a-z0-9_]+_(exact|int8|bf16|fp8)$", map_of({std::move(rows)}))});
}

[[nodiscard]] FileKey memory_key() {
  std::vector<FileKey> keys = keys_of<LevelKeys>();
  for (FileKey& figure : figure_keys(sim::kLevel, machine_evidence())) {
    if (figure.key == "bandwidth")
      figure = following(std::move(figure), {FigureKind::own_bandwidth, FigureKind::shared_bandwidth});
    else if (figure.key == "latency")
      figure = following(std::move(figure), {FigureKind::latency});
    keys.push_back(std::move(figure));
  }
  FileKey memory{.key = "memory", .meaning = "levels, fastest first, DRAM last", .is_required = true};
  FileValue& list = memory.values.emplace_back(FileValue{.kind = ValueKind::list});
  list.items = {map_of(std::move(keys))};
  return memory;
}

[[nodiscard]] FileKey required(FileKey key) {
  key.is_required = true;
  key.absent.clear();
  return key;
}

}  // namespace

FileTree machine_tree() {
  const std::vector<std::string> evidence = machine_evidence();
  FileKey state = figure_key(sim::kClockState, evidence);
  state.pattern = "^(?!default$)[a-z][a-z0-9_]*$";
  std::vector<FileKey> keys = keys_of<MachineKeys>();
  append(keys, figure_keys(sim::kDesign, evidence));
  keys.push_back(map_key("clock_states", "other clocks, by name", {std::move(state)}));
  keys.push_back(peaks_key());
  for (const sim::FigureInfo* info : sim::kMatmuls) keys.push_back(matmuls_key(*info));
  keys.push_back(memory_key());
  keys.push_back(map_key("waves", "of a GPU, which must have them", figure_keys(sim::kWaves, evidence)));
  keys.push_back(required(map_key("overheads", "times to start work", figure_keys(sim::kOverheads, evidence))));
  keys.push_back(map_key("sustained", "shares of peaks, whatever runs", figure_keys(sim::kSustained, evidence)));
  keys.push_back(map_key("reached", "shares of peaks, by stack or program",
                         {many_keys("<stack>", ".", map_of(figure_keys(sim::kReached, evidence)))}));
  append(keys, figure_keys(sim::kLinks, evidence));
  keys.push_back(map_key("power", "what a device draws, without its server", figure_keys(sim::kPower, evidence)));
  append(keys, figure_keys(sim::kPrice, evidence));
  keys.push_back(map_key("calibration", "written by `dculab calibrate`", calibration_keys()));
  return {std::string(kMachineSchema), "a device, and what it costs to run work there", {map_of(std::move(keys))}};
}

}  // namespace dculab::config
