// What people read in the place of a scenario's key.
#pragma once

#include <string>

namespace dculab::study {

// "KV heads" of "model.num_key_value_heads", "max_num_seqs" of "engine.max_num_seqs": the column of an axis.
[[nodiscard]] std::string axis_title(const std::string& key);

}  // namespace dculab::study
