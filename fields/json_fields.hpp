// JSON text to fields of known type, with one message per mistake: file, line, what is wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fields/node.hpp"

namespace dculab {

// Fields of a JSON object by name. A field that is null counts as absent, and a number may be Infinity, as in Hugging
// Face configurations. Copies and the fields of an object inside share the document.
class JsonFields {
 public:
  // Throws InputError when `text` is not a JSON object.
  JsonFields(std::string file, std::string_view text);

  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool mentions(std::string_view key) const;  // also as null
  [[nodiscard]] const std::vector<Node>& members() const { return object_->children; }
  [[nodiscard]] int integer(std::string_view key) const;  // within [-kLimit, kLimit]
  [[nodiscard]] int integer(std::string_view key, int fallback) const;
  [[nodiscard]] double number(std::string_view key) const;
  [[nodiscard]] double number(std::string_view key, double fallback) const;
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] std::vector<int> integers(std::string_view key) const;       // a number, or a list of them
  [[nodiscard]] std::vector<double> numbers(std::string_view key) const;     // a list of numbers; none where absent
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;  // a list of strings
  [[nodiscard]] std::optional<JsonFields> object(std::string_view key) const;
  [[nodiscard]] const std::string& file() const { return document_->file; }

  // Of `key`, in this object or else in one inside of it; nothing where it stands in none.
  [[nodiscard]] std::optional<int> line_of(std::string_view key) const;

  // Names the field and its line; where it is not there, those of the object that should have it.
  [[noreturn]] void refuse(std::string_view key, const std::string& message) const;
  [[noreturn]] void refuse(const Node& member, const std::string& message) const;

  static constexpr int kLimit = 1 << 30;  // no size of a model comes near it

 private:
  struct Document {
    std::string file;
    Node root;
  };
  JsonFields(std::shared_ptr<const Document> document, const Node& object)
      : document_(std::move(document)), object_(&object) {}
  [[nodiscard]] const Node& at(std::string_view key) const;
  [[noreturn]] void refuse_absent(std::string_view key, const std::string& message) const;
  [[nodiscard]] int as_integer(const Node& member, const Node& value) const;

  std::shared_ptr<const Document> document_;
  const Node* object_;  // in the document
};

}  // namespace dculab
