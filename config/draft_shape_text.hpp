// How the shape of a draft is written: "4x2x1", how many of the likeliest tokens follow each node, level by level; or a
// list of paths of ranks, "[(0,), (1,), (0, 0)]", as vLLM has it.
#pragma once

#include <string>

#include "core/draft_tree.hpp"

namespace dculab::config {

// Throws InputError without a place.
[[nodiscard]] DraftShape parse_draft_shape_text(const std::string& text);

// "4" of a chain, "4x2x1" of a tree whose levels are such, else "12 in 3 levels".
[[nodiscard]] std::string draft_shape_text(const DraftShape& shape);

}  // namespace dculab::config
