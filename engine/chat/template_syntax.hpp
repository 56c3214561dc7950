// The syntax tree of a chat template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/chat/template_value.hpp"

namespace dculab::engine::chat {

enum class ExpressionKind : std::uint8_t {
  constant,
  name,
  list,         // parts
  dict,         // parts: key, value, key, value ...
  attribute,    // parts[0].name
  item,         // parts[0][parts[1]]
  slice,        // parts[0][parts[1]:parts[2]:parts[3]], null where left out
  call,         // name(parts..., named...)
  method,       // parts[0].name(parts[1]..., named...)
  filter,       // parts[0] | name(parts[1]..., named...)
  test,         // parts[0] is name(parts[1]...)
  negation,     // not parts[0]
  minus,        // -parts[0]
  conjunction,  // parts[0] and parts[1]
  disjunction,  // parts[0] or parts[1]
  arithmetic,   // parts[0] name parts[1]: + - * / // % ** ~
  comparison,   // parts[0] operators[0] parts[1] operators[1] ...
  conditional,  // parts[0] if parts[1] else parts[2], which may be null
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 0;
  std::string name{};
  Value constant{};
  std::vector<std::unique_ptr<Expression>> parts{};
  std::vector<std::pair<std::string, std::unique_ptr<Expression>>> named{};
  std::vector<std::string> operators{};
};
using ExpressionPtr = std::unique_ptr<Expression>;

enum class StatementKind : std::uint8_t {
  text,
  output,      // {{ value }}
  condition,   // {% if value %} body {% else %} otherwise
  loop,        // {% for targets in value if condition %} body {% else %} otherwise
  assignment,  // {% set targets = value %}; a target "space.attribute" is one of a namespace
  block,       // {% set targets %} body
  macro,       // {% macro name(parameters) %} body
  section,     // {% generation %} body: of what a model is trained on, without a meaning here
  skip,        // {% continue %}
  stop,        // {% break %}
};

struct Statement {
  StatementKind kind = StatementKind::text;
  int line = 0;
  std::string text{};
  std::vector<std::string> targets{};
  ExpressionPtr value{}, condition{};
  std::vector<Statement> body{}, otherwise{};
  std::shared_ptr<const Macro> macro{};
};

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // with their defaults, or null
  std::vector<Statement> body;
};

}  // namespace dculab::engine::chat
