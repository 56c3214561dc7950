#include "engine/tokenizer/json_node.hpp"

namespace dculab::engine {

using nlohmann::json;

JsonNode JsonNode::operator[](const char* key) const {
  static const json kNull;
  if (!value_->is_object()) fail("must be an object");
  const auto member = value_->find(key);
  return {member == value_->end() ? kNull : *member, path_.empty() ? key : path_ + "." + key};
}

std::vector<JsonNode> JsonNode::items() const {
  if (!value_->is_array()) fail("must be a list");
  std::vector<JsonNode> nodes;
  for (std::size_t i = 0; i < value_->size(); ++i) nodes.emplace_back((*value_)[i], item_path(i));
  return nodes;
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) fail("must be a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::flag_or(bool absent) const {
  if (is_null()) return absent;
  if (!value_->is_boolean()) fail("must be true or false");
  return value_->get<bool>();
}

TokenId JsonNode::token_id() const {
  constexpr std::int64_t kMaxTokenId = (1 << 21) - 1;  // eight times the largest vocabulary known; bounds the memory
  if (!value_->is_number_integer()) fail("must be a token id");
  // An unsigned number beyond int64 wraps to a negative one, which is refused as well.
  const auto id = value_->get<std::int64_t>();
  if (id < 0 || id > kMaxTokenId) fail("the token id is outside 0 ... " + std::to_string(kMaxTokenId));
  return static_cast<TokenId>(id);
}

int JsonNode::count_or(int absent) const {
  constexpr std::int64_t kLargest = 1000;
  if (is_null()) return absent;
  const std::int64_t count = value_->is_number_integer() ? value_->get<std::int64_t>() : -1;
  if (count < 0 || count > kLargest) fail("must be a number from 0 to " + std::to_string(kLargest));
  return static_cast<int>(count);
}

std::vector<JsonNode> steps_of(const JsonNode& component, const char* list_key) {
  constexpr int kMostSequences = 32;
  int sequences = 0;
  std::vector<JsonNode> steps;
  std::vector<JsonNode> open = {component};  // last first
  while (!open.empty()) {
    const JsonNode node = open.back();
    open.pop_back();
    if (node.is_null()) continue;
    if (node["type"].text() != "Sequence") {
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
