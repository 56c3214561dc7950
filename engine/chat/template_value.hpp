// Values of chat templates, as Python has them in Jinja2. Copies of lists and dicts share their content, which nothing
// changes but `set` of a namespace's attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace dculab::engine::chat {

// What a template does that cannot be done: raise_exception, an attribute of nothing, "a" + 1.
class TemplateError : public InputError {
 public:
  using InputError::InputError;
};

// A name or an attribute that is not there: empty as a text, false, but without attributes of its own.
struct Undefined {
  std::string name;
};
struct None {};

class Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;  // in order of insertion
struct Namespace {
  Dict attributes;
};
struct Macro;  // of the syntax tree

class Value {
 public:
  using Held = std::variant<Undefined, None, bool, std::int64_t, double, std::string, std::shared_ptr<const List>,
                            std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, const Macro*>;

  Value() = default;
  Value(Undefined undefined) : held_(std::move(undefined)) {}
  Value(None none) : held_(none) {}
  Value(bool flag) : held_(flag) {}
  Value(std::int64_t number) : held_(number) {}
  Value(double number) : held_(number) {}
  Value(std::string text) : held_(std::move(text)) {}
  Value(const char* text) : held_(std::string(text)) {}
  Value(List list) : held_(std::make_shared<const List>(std::move(list))) {}
  Value(Dict dict) : held_(std::make_shared<const Dict>(std::move(dict))) {}
  Value(std::shared_ptr<Namespace> space) : held_(std::move(space)) {}
  Value(const Macro* macro) : held_(macro) {}  // null: a function that is always there

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&held_);
  }
  [[nodiscard]] const List* list() const { return pointee<const List>(); }
  [[nodiscard]] const Dict* dict() const { return pointee<const Dict>(); }
  [[nodiscard]] Namespace* space() const { return pointee<Namespace>(); }
  [[nodiscard]] bool is_undefined() const { return as<Undefined>() != nullptr; }
  [[nodiscard]] bool is_none() const { return as<None>() != nullptr; }
  [[nodiscard]] bool is_number() const { return as<std::int64_t>() || as<double>() || as<bool>(); }

 private:
  template <class T>
  [[nodiscard]] T* pointee() const {
    const auto* found = std::get_if<std::shared_ptr<T>>(&held_);
    return found == nullptr ? nullptr : found->get();
  }

  Held held_;
};

// What Python calls the type: "str", "list".
[[nodiscard]] std::string type_name(const Value& value);

[[nodiscard]] bool is_true(const Value& value);
[[nodiscard]] bool equal(const Value& left, const Value& right);
// -1, 0 or 1, of two numbers, two texts or two lists. Throws TemplateError for others.
[[nodiscard]] int compared(const Value& left, const Value& right);
[[nodiscard]] bool contains(const Value& container, const Value& item);

[[nodiscard]] std::string text_of(const Value& value);       // str()
[[nodiscard]] std::string written_text(const Value& value);  // repr()
// json.dumps(ensure_ascii=False), as the transformers library has it for `tojson`; on lines where `indent` > 0.
[[nodiscard]] std::string json_of(const Value& value, int indent = 0);

// A number or a flag as one. Precondition: is_number().
[[nodiscard]] double number_of(const Value& value);

// Item of a dict or attribute of a namespace by its name; Undefined where it is not there.
[[nodiscard]] Value member(const Value& value, std::string_view name);

// What a loop goes through: items of a list, keys of a dict, characters of a text. Throws TemplateError for others.
[[nodiscard]] List items_of(const Value& value);

// Characters of a text, one each.
[[nodiscard]] std::vector<std::string> characters_of(std::string_view text);

// What str.strip() takes away.
[[nodiscard]] bool is_python_space(char32_t character);

}  // namespace dculab::engine::chat
