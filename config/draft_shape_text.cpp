#include "config/draft_shape_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

[[noreturn]] void refuse_branches(const std::string& text, const std::string& why) {
  throw InputError("speculative_token_tree " + in_quotes(text) + ": " + why);
}

// "4x2x1": how many of the likeliest tokens follow each node, level by level.
[[nodiscard]] DraftShape parse_branches(const std::string& text) {
  std::vector<int> branches;
  std::int64_t nodes = 0, level = 1;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (nodes <= kMostDraftTokens) {
    int branch = 0;
    const auto [next, error] = std::from_chars(at, end, branch);
    if (error != std::errc() || branch < 1 || branch > kMostDraftTokens)
      refuse_branches(text, "must be a list of paths such as [(0,), (1,), (0, 0)], or branches such as 4x2x1");
    branches.push_back(branch);
    level *= branch;
    nodes += level;
    at = next;
    if (at == end) break;
    if (*at++ != 'x') refuse_branches(text, "branches of levels are joined by x, as in 4x2x1");
  }
  if (nodes > kMostDraftTokens) refuse_branches(text, "has more than " + std::to_string(kMostDraftTokens) + " guesses");
  return full_tree_shape(branches);
}

// Where each level has as many guesses for every place: how many.
[[nodiscard]] std::vector<int> branches_of(const DraftShape& shape) {
  std::vector<int> branches;
  for (int depth = 1; depth <= shape.depth(); ++depth) {
    int widest = 0;
    std::vector<int> level;
    for (const DraftShape::Node& node : shape.nodes) widest = std::max(widest, node.rank + 1);
    for (int branch = 1; branch <= widest; ++branch) {
      std::vector<int> tried = branches;
      tried.push_back(branch);
      DraftShape part = full_tree_shape(tried);
      if (part.num_tokens() <= shape.num_tokens() &&
          std::equal(part.nodes.begin(), part.nodes.end(), shape.nodes.begin()))
        level = tried;
    }
    if (level.empty()) return {};
    branches = level;
  }
  return full_tree_shape(branches) == shape ? branches : std::vector<int>();
}

}  // namespace

DraftShape parse_draft_shape_text(const std::string& text) {
  return text.starts_with('[') ? parse_draft_shape(text) : parse_branches(text);
}

std::string draft_shape_text(const DraftShape& shape) {
  if (shape.is_chain()) return std::to_string(shape.num_tokens());
  const std::vector<int> branches = branches_of(shape);
  if (branches.size() < 2)  // "2" is a chain
    return std::to_string(shape.num_tokens()) + " in " + std::to_string(shape.depth()) +
           (shape.depth() == 1 ? " level" : " levels");
  std::string text;
  for (const int branch : branches) {
    if (!text.empty()) text += 'x';
    text += std::to_string(branch);
  }
  return text;
}

}  // namespace dculab::config
