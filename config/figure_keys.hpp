// Figures of machine and stack files as keys: what their entries (sim/hardware/figure_field.hpp) say, as data.
#pragma once

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "config/key_description.hpp"
#include "config/key_tree.hpp"
#include "sim/hardware/figure_field.hpp"

namespace dculab::config {

// The number itself.
[[nodiscard]] inline FileValue number_value(const sim::FigureInfo& info) {
  const ValueKind kind = info.form == sim::FigureForm::whole    ? ValueKind::whole
                         : info.form == sim::FigureForm::number ? ValueKind::number
                                                                : ValueKind::quantity;
  return {.kind = kind, .bounds = info.bounds, .unit = std::string(info.unit)};
}

// {value: ..., kind: ..., source: "..."}, where `evidence` says what kinds there are.
[[nodiscard]] inline FileKey figure_key(const sim::FigureInfo& info, std::vector<std::string> evidence) {
  FileKey key{.key = std::string(info.key), .meaning = std::string(info.meaning)};
  key.is_required = info.is_required();
  key.absent = info.absent;
  FileKey value{.key = "value", .meaning = "the figure", .is_required = true};
  value.values = {number_value(info)};
  if (!info.of.empty()) value.meaning = "a share of " + std::string(info.of);
  FileKey kind{.key = "kind", .meaning = "what it rests on", .is_required = true};
  kind.values = {{.kind = ValueKind::word, .words = std::move(evidence)}};
  FileKey source{.key = "source", .meaning = "who says so", .is_required = true};
  source.values = {{.kind = ValueKind::text}};
  key.values = {{.kind = ValueKind::map, .keys = {std::move(value), std::move(kind), std::move(source)}}};
  return key;
}

// The same, with what holds where it is left out.
template <class T>
[[nodiscard]] FileKey figure_key(const sim::FigureInfo& info, const T& standard, std::vector<std::string> evidence) {
  FileKey key = figure_key(info, std::move(evidence));
  if (!info.is_required() && info.absent.empty()) key.standard = detail::text_of(standard);
  return key;
}

template <class Part, std::size_t N>
[[nodiscard]] std::vector<FileKey> figure_keys(const std::array<sim::FigureField<Part>, N>& fields,
                                               const std::vector<std::string>& evidence) {
  std::vector<FileKey> keys;
  static const Part standard{};
  for (const sim::FigureField<Part>& field : fields)
    keys.push_back(
        sim::visit_figure(standard, field, [&](const auto& value) { return figure_key(field.info, value, evidence); }));
  return keys;
}

// A figure in a map of a scenario's changes: with its unit, or " x" after a number.
[[nodiscard]] inline FileKey changed_figure(std::string pattern, const sim::FigureInfo& info) {
  FileKey key{.key = std::string(info.key), .pattern = std::move(pattern), .meaning = std::string(info.meaning)};
  key.values = {number_value(info), {.kind = ValueKind::text}};
  return key;
}

[[nodiscard]] inline FileKey many_keys(std::string shown, std::string pattern, FileValue value) {
  FileKey key{.key = std::move(shown), .pattern = std::move(pattern)};
  key.values.push_back(std::move(value));
  return key;
}

[[nodiscard]] inline FileValue map_of(std::vector<FileKey> keys) {
  return {.kind = ValueKind::map, .keys = std::move(keys)};
}

inline void append(std::vector<FileKey>& keys, std::vector<FileKey> more) {
  for (FileKey& key : more) keys.push_back(std::move(key));
}

}  // namespace dculab::config
