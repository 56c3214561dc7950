// One list of keys per section of a file: key, member, meaning, bounds. The section's reader (read_keys) follows from
// it, its description (config/key_description.hpp) and, of files that we write as JSON, its writer
// (config/key_writer.hpp).
//
//   struct SloKeys {
//     using Target = ServiceLevel;
//     static constexpr auto keys = std::tuple(
//         value("ttft", &ServiceLevel::ttft, "time to first token", {.bounds = above(0)}),
//         word("routing", &Deployment::routing, kRoutings, "which replica takes a request"),
//         section<StoreKeys>("kv_store", &Deployment::kv_store, "a store that all replicas read"),
//         inlined<LimitKeys>(&ServiceLevel::limits),  // keys of another list, among these
//         shaped("skip", read_skip, {.words = one_of("none", "all"), .is_list = true}, "what is not written"));
//     static void check(MapReader& reader, ServiceLevel& slo);  // optional: what several keys must not say together
//   };
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/map_reader.hpp"
#include "fields/field_list.hpp"

namespace dculab::config {

// What a key says beside its member and its meaning.
struct KeyTraits {
  Bounds bounds{};
  std::string_view unit{};  // of bare numbers; a quantity that has one is such a number, and not a text with its unit
  Necessity necessity = Necessity::optional;  // what is required is always written, other keys where they say something
  std::string_view absent{};                  // what holds where it is left out, if that is not the member's default
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

// The keys of another list among these: of what `get` gives, as a reference, or as a pointer that may be null.
template <class Keys, class Get>
struct InlinedKeys {
  Get get;
  std::string_view absent{};  // of a pointer: what is said of required keys, which are absent with all others
};

// What a value of a ShapedKey may be: any of these, or a map with `Keys`.
struct Shape {
  bool is_text = false, is_flag = false, is_whole = false, is_number = false;
  bool is_counts = false;  // a list of whole numbers
  Allowed words{};
  bool may_be_list = false, must_be_list = false;  // of the same
};

// A value that its own function reads, and writes in files that we write: a null is left out with its key.
template <class Target, class Keys>
struct ShapedKey {
  KeyInfo info;
  Shape shape;
  void (*read)(MapReader& reader, const Node& node, Target& target);
  nlohmann::ordered_json (*write)(const Target& target) = nullptr;
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

template <class Keys, class Get>
[[nodiscard]] constexpr InlinedKeys<Keys, Get> inlined(Get get, std::string_view absent = {}) {
  return {get, absent};
}

template <class Keys = void, class Target>
[[nodiscard]] constexpr ShapedKey<Target, Keys> shaped(std::string_view key,
                                                       void (*read)(MapReader&, const Node&, Target&),
                                                       const Shape& shape, std::string_view meaning,
                                                       const KeyTraits& traits = {}) {
  return {{traits, key, meaning}, shape, read};
}

template <class Keys = void, class Target>
[[nodiscard]] constexpr ShapedKey<Target, Keys> shaped(std::string_view key,
                                                       void (*read)(MapReader&, const Node&, Target&),
                                                       nlohmann::ordered_json (*write)(const Target&),
                                                       const Shape& shape, std::string_view meaning,
                                                       const KeyTraits& traits = {}) {
  return {{traits, key, meaning}, shape, read, write};
}

namespace detail {

// Of which nothing was read. On the heap: GCC 12 takes members of a large static for unset.
template <class Target>
[[nodiscard]] Target& untouched() {
  static const auto target = std::make_unique<Target>();
  return *target;
}

// Of InlinedKeys: what `get` gave, or null.
template <class Target>
[[nodiscard]] Target* pointer_to(Target& target) {
  return &target;
}
template <class Target>
[[nodiscard]] Target* pointer_to(Target* target) {
  return target;
}

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
  const Node* node = ask(reader, key.info);
  if (node == nullptr) return;
  auto& member = begun(std::invoke(key.get, target));
  using Member = std::remove_reference_t<decltype(member)>;
  if constexpr (dculab::detail::is_quantity<Member>) {
    if (!key.info.unit.empty()) {
      double number = member.value();
      reader.read(*node, number, key.info.bounds);
      member = Member(number);
      return;
    }
  }
  reader.read(*node, member, key.info.bounds);
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

template <class Target, class Keys, class Get>
void read_one(MapReader& reader, Target& target, const InlinedKeys<Keys, Get>& keys) {
  if (auto* part = pointer_to(std::invoke(keys.get, target))) read_keys<Keys>(reader, *part);
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

// Calls visit(key, member) for every value of the list.
template <class Keys, class Target, class Visit>
void visit_values(Target& target, Visit&& visit) {
  std::apply([&](const auto&... key) { (visit(key.info.key, std::invoke(key.get, target)), ...); }, Keys::keys);
}

// The key `schema`, which says nothing but what it must.
template <class Target, const std::string_view& kId>
void read_schema(MapReader& reader, const Node& node, Target&) {
  const auto ids = std::to_array<Choice<std::string_view>>({{kId, kId}});
  std::string_view schema;
  reader.read_choice(node, schema, ids);
}

// The names of the keys, which outlive any reader.
template <class Keys>
[[nodiscard]] std::vector<std::string_view> names_of() {
  return std::apply([](const auto&... key) { return std::vector<std::string_view>{key.info.key...}; }, Keys::keys);
}

}  // namespace dculab::config
