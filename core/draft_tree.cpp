#include "core/draft_tree.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace dculab {
namespace {

template <typename Nodes>
std::vector<int> depths_of(const Nodes& nodes) {
  std::vector<int> depths;
  depths.reserve(nodes.size());
  for (const auto& node : nodes)
    depths.push_back(node.parent == DraftNode::kRoot ? 1 : depths[static_cast<std::size_t>(node.parent)] + 1);
  return depths;
}

int deepest(const std::vector<int>& depths) { return depths.empty() ? 0 : std::ranges::max(depths); }

template <typename Nodes>
bool each_follows_the_last(const Nodes& nodes) {
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (nodes[node].parent != static_cast<int>(node) - 1) return false;
  return true;
}

using Path = std::vector<int>;  // ranks, from the root on

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InputError("speculative_token_tree " + std::string(text) + ": " + why,
                   "write the paths of ranks from the root, as [(0,), (1,), (0, 0)]");
}

// The paths of a list of tuples.
class PathReader {
 public:
  explicit PathReader(std::string_view text) : text_(text), rest_(text) {}

  std::vector<Path> read() {
    expect('[');
    std::vector<Path> paths;
    while (!take(']')) {
      if (!paths.empty()) expect(',');
      if (take(']')) break;
      paths.push_back(read_path());
    }
    skip_spaces();
    if (!rest_.empty()) refuse(text_, "something follows the list");
    return paths;
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }

  bool take(char wanted) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) refuse(text_, std::string("a '") + wanted + "' is missing");
  }

  Path read_path() {
    expect('(');
    Path path;
    while (!take(')')) {
      if (!path.empty()) expect(',');
      if (take(')')) break;
      path.push_back(read_rank());
    }
    if (path.empty()) refuse(text_, "a path has no ranks");
    return path;
  }

  int read_rank() {
    skip_spaces();
    int rank = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), rank);
    if (error != std::errc() || rank < 0) refuse(text_, "a rank is no number from 0 on");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return rank;
  }

  std::string_view text_, rest_;
};

Path path_of(const DraftShape& shape, int node) {
  Path path;
  for (; node != DraftNode::kRoot; node = shape.nodes[static_cast<std::size_t>(node)].parent)
    path.push_back(shape.nodes[static_cast<std::size_t>(node)].rank);
  std::ranges::reverse(path);
  return path;
}

}  // namespace

std::vector<int> DraftTree::depths() const { return depths_of(nodes); }
int DraftTree::depth() const { return deepest(depths()); }
bool DraftTree::is_chain() const { return each_follows_the_last(nodes); }

std::vector<int> DraftTree::children(int parent) const {
  std::vector<int> found;
  for (int node = 0; node < num_tokens(); ++node)
    if (nodes[static_cast<std::size_t>(node)].parent == parent) found.push_back(node);
  return found;
}

void DraftTree::truncate(int num_tokens) {
  if (num_tokens >= this->num_tokens()) return;
  const std::size_t vocab_size = probabilities.size() / std::max<std::size_t>(1, nodes.size());
  nodes.resize(static_cast<std::size_t>(num_tokens));
  probabilities.resize(vocab_size * nodes.size());
}

void DraftTree::limit_depth(int depth) {
  const std::vector<int> depths = this->depths();
  if (deepest(depths) <= depth) return;
  const std::size_t vocab_size = probabilities.size() / nodes.size();
  DraftTree kept;
  std::vector<int> new_index(nodes.size(), DraftNode::kRoot);
  for (int node = 0; node < num_tokens(); ++node) {
    const auto index = static_cast<std::size_t>(node);
    if (depths[index] > depth) continue;
    new_index[index] = kept.num_tokens();
    kept.nodes.push_back(nodes[index]);
    int& parent = kept.nodes.back().parent;
    if (parent != DraftNode::kRoot) parent = new_index[static_cast<std::size_t>(parent)];
    const auto row = probabilities.begin() + static_cast<std::ptrdiff_t>(index * vocab_size);
    kept.probabilities.insert(kept.probabilities.end(), row, row + static_cast<std::ptrdiff_t>(vocab_size));
  }
  *this = std::move(kept);
}

DraftTree chain(std::span<const TokenId> tokens) {
  DraftTree tree;
  for (const TokenId token : tokens) tree.nodes.push_back({.token = token, .parent = tree.num_tokens() - 1});
  return tree;
}

std::vector<int> DraftShape::depths() const { return depths_of(nodes); }
int DraftShape::depth() const { return deepest(depths()); }
bool DraftShape::is_chain() const { return each_follows_the_last(nodes); }

int DraftShape::width() const {
  int width = 0;
  for (const Node& node : nodes) width = std::max(width, node.rank + 1);
  return width;
}

DraftShape chain_shape(int num_tokens) {
  DraftShape shape;
  for (int node = 0; node < num_tokens; ++node) shape.nodes.push_back({.parent = node - 1});
  return shape;
}

DraftShape full_tree_shape(std::span<const int> branches) {
  DraftShape shape;
  std::vector<int> level{DraftNode::kRoot};
  for (const int branch : branches) {
    std::vector<int> next;
    for (const int parent : level)
      for (int rank = 0; rank < branch; ++rank) {
        next.push_back(shape.num_tokens());
        shape.nodes.push_back({.parent = parent, .rank = rank});
      }
    level = std::move(next);
  }
  return shape;
}

DraftShape parse_draft_shape(std::string_view text) {
  std::vector<Path> paths = PathReader(text).read();
  if (paths.size() > kMostDraftTokens)
    refuse(text, std::to_string(paths.size()) + " paths, more than " + std::to_string(kMostDraftTokens));
  if (paths.empty()) refuse(text, "no paths");
  std::ranges::sort(paths,
                    [](const Path& a, const Path& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  if (std::ranges::adjacent_find(paths) != paths.end()) refuse(text, "a path stands twice");
  DraftShape shape;
  for (const Path& path : paths) {
    const Path before(path.begin(), path.end() - 1);
    const auto parent = std::ranges::find(paths, before);
    if (!before.empty() && parent == paths.end()) refuse(text, "the beginning of a path is missing");
    shape.nodes.push_back(
        {.parent = before.empty() ? DraftNode::kRoot : static_cast<int>(parent - paths.begin()), .rank = path.back()});
  }
  return shape;
}

std::string to_string(const DraftShape& shape) {
  std::string text = "[";
  for (int node = 0; node < shape.num_tokens(); ++node) {
    const Path path = path_of(shape, node);
    text += node > 0 ? ", (" : "(";
    for (std::size_t level = 0; level < path.size(); ++level) {
      if (level > 0) text += ", ";
      text += std::to_string(path[level]);
    }
    text += path.size() == 1 ? ",)" : ")";
  }
  return text + "]";
}

std::vector<std::uint64_t> visibility(const DraftTree& tree) {
  std::vector<std::uint64_t> rows{1};
  for (int node = 0; node < tree.num_tokens(); ++node) {
    const int parent = tree.nodes[static_cast<std::size_t>(node)].parent;
    rows.push_back(rows[static_cast<std::size_t>(parent + 1)] | std::uint64_t{1} << (node + 1));
  }
  return rows;
}

}  // namespace dculab
