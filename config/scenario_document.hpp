// Sets and removes keys of a scenario's document, dotted as users type them: "kv_cache.block_size".
#pragma once

#include <string>
#include <string_view>

#include "fields/node.hpp"

namespace dculab::config {

void erase_key(Node& map, std::string_view key);

// Another model keeps the changes to its shape, another machine and another stack those to their figures; `machine`
// takes the place of `machines`. After "sweep.", "machine." and "stack." the rest is one key. Throws InputError when
// what a key belongs to has no keys.
void set_key(Node& document, const std::string& key, Node value);

// The key has one value again.
void stop_sweeping(Node& document, const std::string& key);

// The value of a dotted key, or null; of a model, a machine or a stack that is a map, its name.
[[nodiscard]] const Node* find_key(const Node& document, const std::string& key);

// A value that does not come from the file: its text is YAML, its place is `origin`.
[[nodiscard]] Node parse_value(const std::string& origin, const std::string& text);

}  // namespace dculab::config
