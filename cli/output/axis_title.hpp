// What people read in the place of a scenario's key, and programs beside it.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "config/sweep_axis.hpp"

namespace dculab::cli {

// "KV heads" of "model.num_key_value_heads", "max_num_seqs" of "engine.max_num_seqs": the column of an axis.
[[nodiscard]] std::string axis_title(const std::string& key);

// {"model.num_key_value_heads": "8", ...}
[[nodiscard]] Json choices_json(const std::vector<config::Override>& choices);

}  // namespace dculab::cli
