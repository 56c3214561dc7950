// A list of keys (config/key_list.hpp) as JSON, which its reader reads as it was.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

#include "config/key_list.hpp"

namespace dculab::config {

template <class Keys>
[[nodiscard]] nlohmann::ordered_json json_of(const typename Keys::Target& target);

namespace detail {

// All keys of the list at the end of `json`.
template <class Keys, class Target>
void write_keys(nlohmann::ordered_json& json, const Target& target);

template <class T>
[[nodiscard]] nlohmann::ordered_json value_json(const T& value) {
  if constexpr (dculab::detail::is_quantity<T>)
    return value.value();
  else if constexpr (std::is_same_v<T, Dtype>)
    return name(value);
  else
    return value;
}

template <class Get, class Target>
[[nodiscard]] bool says_something(const KeyInfo& info, const Get& get, const Target& target) {
  return info.is_required() || std::invoke(get, target) != std::invoke(get, std::as_const(untouched<Target>()));
}

template <class Target, class Get>
void write_one(nlohmann::ordered_json& json, const Target& target, const ValueKey<Get>& key) {
  if (says_something(key.info, key.get, target))
    json[std::string(key.info.key)] = value_json(std::invoke(key.get, target));
}

template <class Target, class Get, class Word>
void write_one(nlohmann::ordered_json& json, const Target& target, const WordKey<Get, Word>& key) {
  if (!says_something(key.info, key.get, target)) return;
  for (const auto& [word, meant] : key.words)
    if (meant == std::invoke(key.get, target)) json[std::string(key.info.key)] = word;
}

template <class Target, class Keys, class Get>
void write_one(nlohmann::ordered_json& json, const Target& target, const SectionKey<Keys, Get>& key) {
  const auto& member = std::invoke(key.get, target);
  if constexpr (dculab::detail::is_optional<std::remove_cvref_t<decltype(member)>>) {
    if (member) json[std::string(key.info.key)] = json_of<Keys>(*member);
  } else {
    if (says_something(key.info, key.get, target)) json[std::string(key.info.key)] = json_of<Keys>(member);
  }
}

template <class Target, class Keys>
void write_one(nlohmann::ordered_json& json, const Target& target, const ShapedKey<Target, Keys>& key) {
  if (key.write == nullptr) return;
  if (nlohmann::ordered_json value = key.write(target); !value.is_null())
    json[std::string(key.info.key)] = std::move(value);
}

template <class Target, class Keys, class Get>
void write_one(nlohmann::ordered_json& json, const Target& target, const InlinedKeys<Keys, Get>& keys) {
  if (const auto* part = pointer_to(std::invoke(keys.get, target))) write_keys<Keys>(json, *part);
}

template <class Keys, class Target>
void write_keys(nlohmann::ordered_json& json, const Target& target) {
  std::apply([&](const auto&... key) { (write_one(json, target, key), ...); }, Keys::keys);
}

}  // namespace detail

template <class Keys>
nlohmann::ordered_json json_of(const typename Keys::Target& target) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  detail::write_keys<Keys>(json, target);
  return json;
}

}  // namespace dculab::config
