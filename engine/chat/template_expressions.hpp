// Reads the expressions of a chat template, with Jinja2's precedence.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/template_syntax.hpp"
#include "engine/chat/template_tokens.hpp"

namespace dculab::engine::chat {

class ExpressionReader {
 public:
  // Both outlive it. The last token is TokenKind::end.
  ExpressionReader(std::span<const Token> tokens, const std::string& file) : tokens_(tokens), file_(file) {}

  [[nodiscard]] ExpressionPtr expression();  // with `if ... else`, and commas without brackets: a list
  [[nodiscard]] ExpressionPtr expression_in_list() { return conditional(); }  // without commas
  [[nodiscard]] ExpressionPtr disjunction();                                  // without `if` either

  [[nodiscard]] const Token& next() const { return tokens_[at_]; }
  [[nodiscard]] bool is_next(TokenKind kind, std::string_view text = {}) const {
    return next().kind == kind && (text.empty() || next().text == text);
  }
  const Token& take() { return tokens_[at_ < tokens_.size() - 1 ? at_++ : at_]; }
  bool skip(TokenKind kind, std::string_view text = {}) {
    const bool found = is_next(kind, text);
    if (found) take();
    return found;
  }
  // Throws InputError where something else stands there.
  const Token& expect(TokenKind kind, std::string_view what);
  void expect_sign(std::string_view sign);
  [[nodiscard]] std::string expect_name() { return expect(TokenKind::name, "a name").text; }
  // Functions that are called, with their lines.
  [[nodiscard]] const std::vector<std::pair<std::string, int>>& calls() const { return calls_; }
  [[noreturn]] void refuse(const std::string& what) const;
  // What dculab's subset of Jinja leaves out.
  [[noreturn]] void refuse_construct(const std::string& construct) const;

 private:
  class Depth;
  [[nodiscard]] ExpressionPtr conditional();
  [[nodiscard]] ExpressionPtr conjunction();
  [[nodiscard]] ExpressionPtr negation();
  [[nodiscard]] ExpressionPtr comparison();
  [[nodiscard]] ExpressionPtr arithmetic(std::size_t level);
  [[nodiscard]] ExpressionPtr unary(bool with_filters);
  [[nodiscard]] ExpressionPtr primary();
  [[nodiscard]] ExpressionPtr named_value();
  [[nodiscard]] ExpressionPtr list(std::string_view close, ExpressionKind kind);
  [[nodiscard]] ExpressionPtr bracketed();
  [[nodiscard]] ExpressionPtr with_suffixes(ExpressionPtr value);
  [[nodiscard]] ExpressionPtr with_filters(ExpressionPtr value);
  [[nodiscard]] ExpressionPtr subscript(ExpressionPtr value);
  [[nodiscard]] ExpressionPtr called(ExpressionPtr callee);
  [[nodiscard]] ExpressionPtr filter(ExpressionPtr value);
  [[nodiscard]] ExpressionPtr test(ExpressionPtr value);
  [[nodiscard]] std::string comparison_operator();
  void arguments(Expression& call);
  [[nodiscard]] ExpressionPtr make(ExpressionKind kind, std::string name = {}) const;

  std::span<const Token> tokens_;
  const std::string& file_;
  std::vector<std::pair<std::string, int>> calls_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace dculab::engine::chat
