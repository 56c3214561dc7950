// What a file may have, as data: for its schema and its reference page. Made from the lists that readers go by
// (config/key_list.hpp, sim/hardware/figure_field.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fields/bounds.hpp"

namespace dculab::config {

enum class ValueKind : std::uint8_t {
  text,
  word,  // one of `words`
  flag,
  whole,
  number,
  quantity,  // a text with its unit, "16 GiB"
  list,      // each of its items is one of `items`
  map,       // with `keys`
  scalar     // a text, a number or a flag, as another key says
};

// The value of a key; a map's keys have values again, which is why FileKey lies inside.
struct FileValue {
  struct Key {
    std::string key;        // as a reader says it: "block_size"; of many keys "<dtype>"
    std::string pattern{};  // of many keys: a regular expression
    std::string meaning{};
    bool is_required = false;
    std::string standard{};           // what holds where it is left out, as a file would say it
    std::string absent{};             // the same in words, where a file could not say it
    std::vector<FileValue> values{};  // any of these
  };

  ValueKind kind = ValueKind::text;
  Bounds bounds{};     // of numbers, and of quantities in `unit`
  std::string unit{};  // "s", "B/s", "share", "tokens"; empty where it says nothing
  std::vector<std::string> words{};
  std::vector<FileValue> items{};
  std::vector<Key> keys{};
  std::vector<std::string> one_of{};  // keys of which one at least must be there
  std::string title{};                // of a document, where there are several kinds
};

using FileKey = FileValue::Key;

[[nodiscard]] inline FileValue any_scalar() { return {.kind = ValueKind::scalar}; }

// A key whose value is a map with `keys`.
[[nodiscard]] inline FileKey map_key(std::string key, std::string meaning, std::vector<FileKey> keys) {
  FileKey map{.key = std::move(key), .meaning = std::move(meaning), .absent = "none"};
  map.values = {FileValue{.kind = ValueKind::map, .keys = std::move(keys)}};
  return map;
}

// A kind of file.
struct FileTree {
  std::string id;  // "dculab/machine/1"
  std::string meaning;
  std::vector<FileValue> documents;  // any of these: in JSON Lines a line is one
};

[[nodiscard]] FileTree machine_tree();
[[nodiscard]] FileTree stack_tree();
[[nodiscard]] FileTree scenario_tree();
[[nodiscard]] FileTree trace_tree();

// The dotted keys of a scenario's sections whose last part is `key`: "workload.batch" for "batch".
[[nodiscard]] std::vector<std::string> scenario_keys_named(std::string_view key);

}  // namespace dculab::config
