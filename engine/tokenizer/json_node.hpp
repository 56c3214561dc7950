// A value of a JSON document and where it stands in it, so that every message can say so.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/error.hpp"
#include "fields/node.hpp"

namespace dculab::engine {

// Points into the document, which must outlive it.
class JsonNode {
 public:
  JsonNode(const Node& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(path_.empty() ? what : path_ + ": " + what);
  }

  // A missing member reads as null.
  [[nodiscard]] JsonNode operator[](const char* key) const;
  [[nodiscard]] std::vector<JsonNode> items() const;
  [[nodiscard]] std::string item_path(std::size_t i) const { return path_ + "[" + std::to_string(i) + "]"; }
  [[nodiscard]] const Node& value() const { return *value_; }
  [[nodiscard]] bool is_null() const { return value_->kind == NodeKind::null; }

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::string text_or(const std::string& absent) const { return is_null() ? absent : text(); }
  [[nodiscard]] bool flag_or(bool absent) const;
  [[nodiscard]] TokenId token_id() const;
  [[nodiscard]] int count_or(int absent) const;  // a small number, not negative

 private:
  const Node* value_;
  std::string path_;
};

// The steps of a tokenizer's component in order, with "Sequence"s opened. None for null. At most 64: a text goes
// through each.
[[nodiscard]] std::vector<JsonNode> steps_of(const JsonNode& component, const char* list_key);

}  // namespace dculab::engine
