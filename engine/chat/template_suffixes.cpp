// What follows a value: attributes, indices, calls, filters and tests.
#include <utility>

#include "engine/chat/template_expressions.hpp"
#include "engine/chat/template_functions.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine::chat {

ExpressionPtr ExpressionReader::with_suffixes(ExpressionPtr value) {
  for (;;) {
    if (skip(TokenKind::sign, ".")) {
      ExpressionPtr whole = make(ExpressionKind::attribute);
      whole->name = next().kind == TokenKind::integer ? take().text : expect_name();
      whole->parts.push_back(std::move(value));
      value = std::move(whole);
    } else if (skip(TokenKind::sign, "[")) {
      value = subscript(std::move(value));
    } else if (is_next(TokenKind::sign, "(")) {
      value = called(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionReader::subscript(ExpressionPtr value) {
  ExpressionPtr whole = make(ExpressionKind::item);
  whole->parts.push_back(std::move(value));
  const auto bound = [this] {
    return is_next(TokenKind::sign, ":") || is_next(TokenKind::sign, "]") ? nullptr : conditional();
  };
  whole->parts.push_back(bound());
  if (is_next(TokenKind::sign, ":")) whole->kind = ExpressionKind::slice;
  while (skip(TokenKind::sign, ":")) whole->parts.push_back(bound());
  if (whole->kind == ExpressionKind::slice) whole->parts.resize(4);
  if (whole->kind == ExpressionKind::item && whole->parts[1] == nullptr) refuse("expected an index between [ and ]");
  expect_sign("]");
  return whole;
}

ExpressionPtr ExpressionReader::called(ExpressionPtr callee) {
  if (callee->kind == ExpressionKind::attribute) {
    callee->kind = ExpressionKind::method;
  } else if (callee->kind == ExpressionKind::name) {
    callee->kind = ExpressionKind::call;
    calls_.emplace_back(callee->name, callee->line);
  } else {
    refuse_construct("a call of what is neither a name nor a method");
  }
  arguments(*callee);
  return callee;
}

void ExpressionReader::arguments(Expression& call) {
  expect_sign("(");
  while (!skip(TokenKind::sign, ")")) {
    if (is_next(TokenKind::sign, "*") || is_next(TokenKind::sign, "**")) refuse_construct("*arguments");
    const bool is_named =
        next().kind == TokenKind::name && tokens_[at_ + 1].text == "=" && tokens_[at_ + 1].kind == TokenKind::sign;
    if (is_named) {
      std::string name = take().text;
      take();
      call.named.emplace_back(std::move(name), conditional());
    } else {
      call.parts.push_back(conditional());
    }
    if (!is_next(TokenKind::sign, ")")) expect_sign(",");
  }
}

ExpressionPtr ExpressionReader::with_filters(ExpressionPtr value) {
  for (;;) {
    if (skip(TokenKind::sign, "|"))
      value = filter(std::move(value));
    else if (skip(TokenKind::name, "is"))
      value = test(std::move(value));
    else
      return value;
  }
}

ExpressionPtr ExpressionReader::filter(ExpressionPtr value) {
  ExpressionPtr whole = make(ExpressionKind::filter, expect_name());
  whole->parts.push_back(std::move(value));
  if (is_next(TokenKind::sign, "(")) arguments(*whole);
  return whole;
}

ExpressionPtr ExpressionReader::test(ExpressionPtr value) {
  const bool is_not = skip(TokenKind::name, "not");
  ExpressionPtr whole = make(ExpressionKind::test, expect_name());
  if (!is_test(whole->name)) refuse_construct("the test " + in_quotes(whole->name));
  whole->parts.push_back(std::move(value));
  const bool is_word = next().kind == TokenKind::name && next().text != "else" && next().text != "or" &&
                       next().text != "and" && next().text != "is" && next().text != "if" && next().text != "not" &&
                       next().text != "in";
  const bool is_literal = next().kind == TokenKind::text || next().kind == TokenKind::integer;
  if (is_next(TokenKind::sign, "("))
    arguments(*whole);
  else if (is_word || is_literal)
    whole->parts.push_back(with_suffixes(primary()));
  if (!is_not) return whole;
  ExpressionPtr negated = make(ExpressionKind::negation);
  negated->parts.push_back(std::move(whole));
  return negated;
}

}  // namespace dculab::engine::chat
