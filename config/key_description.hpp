// What a list of keys (config/key_list.hpp) says, as data: for schemas and reference pages.
#pragma once

#include <algorithm>
#include <functional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/key_list.hpp"
#include "config/key_tree.hpp"
#include "config/yaml_writer.hpp"

namespace dculab::config {

template <class Keys>
[[nodiscard]] std::vector<FileKey> keys_of();

// The short names of all dtypes.
[[nodiscard]] std::vector<std::string> dtype_words();

namespace detail {

template <class T>
[[nodiscard]] FileValue value_of(const KeyInfo& info) {
  if constexpr (dculab::detail::is_optional<T>) {
    return value_of<typename T::value_type>(info);
  } else if constexpr (dculab::detail::List<T>) {
    return {.kind = ValueKind::list, .items = {value_of<std::ranges::range_value_t<T>>(info)}};
  } else if constexpr (dculab::detail::is_quantity<T>) {
    if (!info.unit.empty()) return {.kind = ValueKind::number, .bounds = info.bounds, .unit = std::string(info.unit)};
    return {.kind = ValueKind::quantity, .bounds = info.bounds, .unit = std::string(unit_of<T>())};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {.kind = ValueKind::flag};
  } else if constexpr (std::is_same_v<T, Dtype>) {
    return {.kind = ValueKind::word, .words = dtype_words()};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return {.kind = std::is_integral_v<T> ? ValueKind::whole : ValueKind::number,
            .bounds = info.bounds,
            .unit = std::string(info.unit)};
  } else {
    return {};
  }
}

// As a file would say it; nothing of what has no value.
template <class T>
[[nodiscard]] std::string text_of(const T& value) {
  if constexpr (dculab::detail::is_optional<T>)
    return value ? text_of(*value) : std::string();
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_same_v<T, Dtype>)
    return std::string(name(value));
  else if constexpr (std::is_same_v<T, std::string>)
    return value;
  else if constexpr (dculab::detail::List<T>)
    return {};
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else
    return figure_text(value);
}

template <class Get, class Word>
[[nodiscard]] std::string standard_word(const WordKey<Get, Word>& key, const Word& value) {
  for (const auto& [text, meant] : key.words)
    if (meant == value) return std::string(text);
  return {};
}
template <class Get, class Word>
[[nodiscard]] std::string standard_word(const WordKey<Get, Word>& key, const std::optional<Word>& value) {
  return value ? standard_word(key, *value) : std::string();
}

[[nodiscard]] inline FileKey described(const KeyInfo& info) {
  FileKey key{.key = std::string(info.key), .meaning = std::string(info.meaning)};
  key.is_required = info.is_required();
  key.absent = info.absent;
  return key;
}

// Of a key that may be left out, and says nothing else: what a Target has.
[[nodiscard]] inline bool has_standard(const KeyInfo& info) { return !info.is_required() && info.absent.empty(); }

template <class Target, class Get>
[[nodiscard]] FileKey describe_one(const ValueKey<Get>& key) {
  const auto& member = std::invoke(key.get, untouched<Target>());
  FileKey result = described(key.info);
  result.values = {value_of<std::remove_cvref_t<decltype(member)>>(key.info)};
  if (has_standard(key.info)) result.standard = text_of(member);
  return result;
}

template <class Target, class Get, class Word>
[[nodiscard]] FileKey describe_one(const WordKey<Get, Word>& key) {
  FileKey result = described(key.info);
  FileValue& words = result.values.emplace_back(FileValue{.kind = ValueKind::word});
  for (const auto& [text, meant] : key.words) words.words.emplace_back(text);
  if (has_standard(key.info)) result.standard = standard_word(key, std::invoke(key.get, untouched<Target>()));
  return result;
}

template <class Target, class Keys, class Get>
[[nodiscard]] FileKey describe_one(const SectionKey<Keys, Get>& key) {
  FileKey result = described(key.info);
  result.values = {FileValue{.kind = ValueKind::map, .keys = keys_of<Keys>()}};
  return result;
}

[[nodiscard]] std::vector<FileValue> values_of(const KeyInfo& info, const Shape& shape);

template <class Target, class Keys>
[[nodiscard]] FileKey describe_one(const ShapedKey<Target, Keys>& key) {
  FileKey result = described(key.info);
  result.values = values_of(key.info, key.shape);
  if constexpr (!std::is_void_v<Keys>) {
    FileValue map{.kind = ValueKind::map, .keys = keys_of<Keys>()};
    if (key.shape.must_be_list)
      result.values.front().items.push_back(std::move(map));
    else
      result.values.push_back(std::move(map));
  }
  return result;
}

template <class Target, class Key>
void describe(std::vector<FileKey>& keys, const Key& key) {
  keys.push_back(describe_one<Target>(key));
}

// Each key once; none is required of a part that may not be there.
template <class Target, class Keys, class Get>
void describe(std::vector<FileKey>& keys, const InlinedKeys<Keys, Get>& inlined) {
  for (FileKey& key : keys_of<Keys>()) {
    if (std::ranges::find(keys, key.key, &FileKey::key) != keys.end()) continue;
    if (!inlined.absent.empty() && key.is_required) key.is_required = false, key.absent = inlined.absent;
    keys.push_back(std::move(key));
  }
}

}  // namespace detail

template <class Keys>
std::vector<FileKey> keys_of() {
  std::vector<FileKey> keys;
  std::apply([&](const auto&... key) { (detail::describe<typename Keys::Target>(keys, key), ...); }, Keys::keys);
  return keys;
}

}  // namespace dculab::config
