// Reads engine.groups_by_load: a second set of KV heads, and the load at which requests get it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "core/groups_by_load.hpp"

namespace dculab::config {

// The second set, beside GroupsByLoad; one of both.
struct FewHeadsChoice {
  int num_key_value_heads = 0;  // means of the model's own heads; 0: `model` says
  std::string model;            // merged before: a folder, or a name under scenarios/models
};

// The map of engine.groups_by_load, where it is there.
void read_groups_by_load(MapReader reader, std::optional<GroupsByLoad>& groups, FewHeadsChoice& choice);

// Its keys.
[[nodiscard]] std::vector<FileKey> groups_by_load_keys();

}  // namespace dculab::config
