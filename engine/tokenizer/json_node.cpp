#include "engine/tokenizer/json_node.hpp"

#include <optional>

#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine {
namespace {

// An integer within the range, or nothing.
std::optional<std::int64_t> integer_within(const Node& node, std::int64_t low, std::int64_t high) {
  const auto number = integer_of(node);
  return number && *number >= low && *number <= high ? number : std::nullopt;
}

}  // namespace

JsonNode JsonNode::operator[](const char* key) const {
  static const Node kNull;
  if (value_->kind != NodeKind::map) fail("must be an object");
  const Node* member = value_->find(key);
  return {member == nullptr ? kNull : *member, path_.empty() ? shortened(key) : path_ + "." + shortened(key)};
}

std::vector<JsonNode> JsonNode::items() const {
  if (value_->kind != NodeKind::list) fail("must be a list");
  std::vector<JsonNode> nodes;
  for (std::size_t i = 0; i < value_->children.size(); ++i) nodes.emplace_back(value_->children[i], item_path(i));
  return nodes;
}

const std::string& JsonNode::text() const {
  if (!value_->is(ScalarType::text)) fail("must be a string");
  return value_->text;
}

bool JsonNode::flag_or(bool absent) const {
  if (is_null()) return absent;
  if (!value_->is(ScalarType::flag)) fail("must be true or false");
  return value_->text == "true";
}

TokenId JsonNode::token_id() const {
  constexpr std::int64_t kMaxTokenId = (1 << 21) - 1;  // eight times the largest vocabulary known; bounds the memory
  if (!value_->is(ScalarType::integer)) fail("must be a token id");
  const auto id = integer_within(*value_, 0, kMaxTokenId);
  if (!id) fail("the token id is outside 0 ... " + std::to_string(kMaxTokenId));
  return static_cast<TokenId>(*id);
}

int JsonNode::count_or(int absent) const {
  constexpr std::int64_t kLargest = 1000;
  if (is_null()) return absent;
  const auto count = integer_within(*value_, 0, kLargest);
  if (!count) fail("must be a number from 0 to " + std::to_string(kLargest));
  return static_cast<int>(*count);
}

std::vector<JsonNode> steps_of(const JsonNode& component, const char* list_key) {
  constexpr int kMostSequences = 32;
  constexpr std::size_t kMostSteps = 64;
  int sequences = 0;
  std::vector<JsonNode> steps;
  std::vector<JsonNode> open = {component};  // last first
  while (!open.empty()) {
    const JsonNode node = open.back();
    open.pop_back();
    if (node.is_null()) continue;
    if (node["type"].text() != "Sequence") {
      if (steps.size() == kMostSteps) component.fail("has more than " + std::to_string(kMostSteps) + " steps");
      steps.push_back(node);
      continue;
    }
    if (++sequences > kMostSequences) component.fail("has too many nested sequences");
    std::vector<JsonNode> inner = node[list_key].items();
    open.insert(open.end(), inner.rbegin(), inner.rend());
  }
  return steps;
}

}  // namespace dculab::engine
