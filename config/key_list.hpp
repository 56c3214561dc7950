// One list of keys per section of a file: key, member, meaning, bounds. The section's reader (read_keys) and its
// description (keys_of) follow from it.
//
//   struct SloKeys {
//     using Target = ServiceLevel;
//     static constexpr auto keys = std::tuple(
//         value("ttft", &ServiceLevel::ttft, "time to first token", {.bounds = above(0)}),
//         word("routing", &Deployment::routing, kRoutings, "which replica takes a request"),
//         section<StoreKeys>("kv_store", &Deployment::kv_store, "a store that all replicas read"),
//         shaped("skip", read_skip, {.words = one_of("none", "all"), .is_list = true}, "what is not written"));
//     static void check(MapReader& reader, ServiceLevel& slo);  // optional: what several keys must not say together
//   };
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/yaml_writer.hpp"
#include "fields/field_list.hpp"

namespace dculab::config {

// What a key says beside its member and its meaning.
struct KeyTraits {
  Bounds bounds{};
  std::string_view unit{};  // of bare numbers
  Necessity necessity = Necessity::optional;
  std::string_view absent{};  // what holds where it is left out, if that is not the member's default
};

struct KeyInfo : KeyTraits {
  std::string_view key;
  std::string_view meaning;

  [[nodiscard]] constexpr bool is_required() const { return necessity == Necessity::required; }
};

template <class Get>
struct ValueKey {
  KeyInfo info;
  Get get;  // a member, or a function from the target to what is read
};

template <class Get, class Word>
struct WordKey {
  KeyInfo info;
  Get get;
  std::span<const Choice<Word>> words;
};

// A map under a key. Of an optional it is there where the key is.
template <class Keys, class Get>
struct SectionKey {
  KeyInfo info;
  Get get;
};

// What a value of a ShapedKey may be: any of these, or a map with `Keys`.
struct Shape {
  bool is_text = false, is_whole = false, is_number = false;
  Allowed words{};
  bool may_be_list = false, must_be_list = false;  // of the same
};

// A value that its own function reads.
template <class Target, class Keys>
struct ShapedKey {
  KeyInfo info;
  Shape shape;
  void (*read)(MapReader& reader, const Node& node, Target& target);
};

template <class Get>
[[nodiscard]] constexpr ValueKey<Get> value(std::string_view key, Get get, std::string_view meaning,
                                            const KeyTraits& traits = {}) {
  return {{traits, key, meaning}, get};
}

template <class Get, class Word, std::size_t N>
[[nodiscard]] constexpr WordKey<Get, Word> word(std::string_view key, Get get, const std::array<Choice<Word>, N>& words,
                                                std::string_view meaning, const KeyTraits& traits = {}) {
  return {{traits, key, meaning}, get, words};
}

template <class Keys, class Get>
[[nodiscard]] constexpr SectionKey<Keys, Get> section(std::string_view key, Get get, std::string_view meaning,
                                                      const KeyTraits& traits = {}) {
  return {{traits, key, meaning}, get};
}

template <class Keys = void, class Target>
[[nodiscard]] constexpr ShapedKey<Target, Keys> shaped(std::string_view key,
                                                       void (*read)(MapReader&, const Node&, Target&),
                                                       const Shape& shape, std::string_view meaning,
                                                       const KeyTraits& traits = {}) {
  return {{traits, key, meaning}, shape, read};
}

namespace detail {

// What is read into: of an optional, what it holds from now on.
template <class Member>
[[nodiscard]] auto& begun(Member& member) {
  if constexpr (dculab::detail::is_optional<Member>)
    return member.emplace();
  else
    return member;
}

[[nodiscard]] inline const Node* ask(MapReader& reader, const KeyInfo& info) {
  return info.is_required() ? reader.required(info.key) : reader.optional(info.key);
}

template <class Target, class Get>
void read_one(MapReader& reader, Target& target, const ValueKey<Get>& key) {
  if (const Node* node = ask(reader, key.info))
    reader.read(*node, begun(std::invoke(key.get, target)), key.info.bounds);
}

template <class Target, class Get, class Word>
void read_one(MapReader& reader, Target& target, const WordKey<Get, Word>& key) {
  if (const Node* node = ask(reader, key.info))
    reader.read_choice(*node, begun(std::invoke(key.get, target)), ChoiceView<Word>(key.words));
}

template <class Target, class Keys>
void read_one(MapReader& reader, Target& target, const ShapedKey<Target, Keys>& key) {
  if (const Node* node = ask(reader, key.info)) key.read(reader, *node, target);
}

}  // namespace detail

// All keys of the list, then what they must not say together. Unknown keys are left to reader.finish().
template <class Keys>
void read_keys(MapReader& reader, typename Keys::Target& target);

// The map under `key` of `reader`, whole.
template <class Keys>
void read_section(MapReader section, typename Keys::Target& target) {
  if (!section.is_present()) return;
  read_keys<Keys>(section, target);
  section.finish();
}

namespace detail {

template <class Target, class Keys, class Get>
void read_one(MapReader& reader, Target& target, const SectionKey<Keys, Get>& key) {
  MapReader section = key.info.is_required() ? reader.required_map(key.info.key) : reader.optional_map(key.info.key);
  if (section.is_present()) read_section<Keys>(std::move(section), begun(std::invoke(key.get, target)));
}

}  // namespace detail

template <class Keys>
void read_keys(MapReader& reader, typename Keys::Target& target) {
  std::apply([&](const auto&... key) { (detail::read_one(reader, target, key), ...); }, Keys::keys);
  if constexpr (requires { Keys::check(reader, target); })
    if (reader.is_present()) Keys::check(reader, target);
}

// The one key `name` of the list, where others decide whether it may be there.
template <class Keys>
void read_key(MapReader& reader, std::string_view name, typename Keys::Target& target) {
  const auto read = [&](const auto& key) {
    if (key.info.key == name) detail::read_one(reader, target, key);
  };
  std::apply([&](const auto&... key) { (read(key), ...); }, Keys::keys);
}

// The key `schema`, which says nothing but what it must.
template <class Target, const std::string_view& kId>
void read_schema(MapReader& reader, const Node& node, Target&) {
  const auto ids = std::to_array<Choice<std::string_view>>({{kId, kId}});
  std::string_view schema;
  reader.read_choice(node, schema, ids);
}

// What the list says, as data.
template <class Keys>
[[nodiscard]] std::vector<FileKey> keys_of();

// The names of the keys, which outlive any reader.
template <class Keys>
[[nodiscard]] std::vector<std::string_view> names_of() {
  return std::apply([](const auto&... key) { return std::vector<std::string_view>{key.info.key...}; }, Keys::keys);
}

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

// Of which nothing was read. On the heap: GCC 12 takes members of a large static for unset.
template <class Target>
[[nodiscard]] Target& untouched() {
  static const auto target = std::make_unique<Target>();
  return *target;
}

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
  if constexpr (!std::is_void_v<Keys>)
    result.values.push_back(FileValue{.kind = ValueKind::map, .keys = keys_of<Keys>()});
  return result;
}

}  // namespace detail

template <class Keys>
std::vector<FileKey> keys_of() {
  return std::apply(
      [](const auto&... key) { return std::vector<FileKey>{detail::describe_one<typename Keys::Target>(key)...}; },
      Keys::keys);
}

}  // namespace dculab::config
