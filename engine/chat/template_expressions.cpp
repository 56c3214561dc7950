#include "engine/chat/template_expressions.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/chat/template_functions.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine::chat {
namespace {

constexpr int kDeepestExpression = 100;  // expressions in one another

}  // namespace

class ExpressionReader::Depth {
 public:
  explicit Depth(ExpressionReader& reader) : reader_(reader) {
    if (++reader.depth_ > kDeepestExpression)
      reader.refuse("more than " + std::to_string(kDeepestExpression) + " expressions in another");
  }
  ~Depth() { --reader_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  ExpressionReader& reader_;
};

void ExpressionReader::refuse(const std::string& what) const { throw InputError(file_, next().line, what); }

void ExpressionReader::refuse_construct(const std::string& construct) const { refuse(not_in_subset(construct)); }

const Token& ExpressionReader::expect(TokenKind kind, std::string_view what) {
  if (next().kind != kind) refuse("expected " + std::string(what) + ", not " + in_quotes(next().text));
  return take();
}

void ExpressionReader::expect_sign(std::string_view sign) {
  if (!skip(TokenKind::sign, sign)) refuse("expected " + in_quotes(sign) + ", not " + in_quotes(next().text));
}

ExpressionPtr ExpressionReader::make(ExpressionKind kind, std::string name) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = next().line;
  made->name = std::move(name);
  return made;
}

ExpressionPtr ExpressionReader::expression() {
  ExpressionPtr first = conditional();
  if (!is_next(TokenKind::sign, ",")) return first;
  ExpressionPtr tuple = make(ExpressionKind::list);
  tuple->parts.push_back(std::move(first));
  while (skip(TokenKind::sign, ",")) {
    if (is_next(TokenKind::block_end) || is_next(TokenKind::output_end) || is_next(TokenKind::sign, ")")) break;
    tuple->parts.push_back(conditional());
  }
  return tuple;
}

ExpressionPtr ExpressionReader::conditional() {
  const Depth depth(*this);
  ExpressionPtr value = disjunction();
  while (skip(TokenKind::name, "if")) {
    ExpressionPtr whole = make(ExpressionKind::conditional);
    whole->parts.push_back(std::move(value));
    whole->parts.push_back(disjunction());
    whole->parts.push_back(skip(TokenKind::name, "else") ? conditional() : nullptr);
    value = std::move(whole);
  }
  return value;
}

ExpressionPtr ExpressionReader::disjunction() {
  ExpressionPtr value = conjunction();
  while (skip(TokenKind::name, "or")) {
    ExpressionPtr whole = make(ExpressionKind::disjunction);
    whole->parts.push_back(std::move(value));
    whole->parts.push_back(conjunction());
    value = std::move(whole);
  }
  return value;
}

ExpressionPtr ExpressionReader::conjunction() {
  ExpressionPtr value = negation();
  while (skip(TokenKind::name, "and")) {
    ExpressionPtr whole = make(ExpressionKind::conjunction);
    whole->parts.push_back(std::move(value));
    whole->parts.push_back(negation());
    value = std::move(whole);
  }
  return value;
}

ExpressionPtr ExpressionReader::negation() {
  if (!is_next(TokenKind::name, "not")) return comparison();
  const Depth depth(*this);
  ExpressionPtr whole = make(ExpressionKind::negation);
  take();
  whole->parts.push_back(negation());
  return whole;
}

// Empty where none stands there.
std::string ExpressionReader::comparison_operator() {
  constexpr std::array<std::string_view, 6> kSigns = {"==", "!=", "<", "<=", ">", ">="};
  if (next().kind == TokenKind::sign && std::ranges::count(kSigns, next().text) > 0) return take().text;
  if (skip(TokenKind::name, "in")) return "in";
  const bool is_not_in = is_next(TokenKind::name, "not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == "in";
  if (!is_not_in) return {};
  take(), take();
  return "not in";
}

ExpressionPtr ExpressionReader::comparison() {
  ExpressionPtr value = arithmetic(0);
  std::string found = comparison_operator();
  if (found.empty()) return value;
  ExpressionPtr whole = make(ExpressionKind::comparison);
  whole->parts.push_back(std::move(value));
  for (; !found.empty(); found = comparison_operator()) {
    whole->operators.push_back(found);
    whole->parts.push_back(arithmetic(0));
  }
  return whole;
}

ExpressionPtr ExpressionReader::arithmetic(std::size_t level) {
  static const std::array<std::vector<std::string_view>, 4> kLevels = {
      {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}};
  if (level == kLevels.size()) return unary(true);
  ExpressionPtr value = arithmetic(level + 1);
  while (next().kind == TokenKind::sign && std::ranges::count(kLevels[level], next().text) > 0) {
    ExpressionPtr whole = make(ExpressionKind::arithmetic, next().text);
    take();
    whole->parts.push_back(std::move(value));
    whole->parts.push_back(arithmetic(level + 1));
    value = std::move(whole);
  }
  return value;
}

ExpressionPtr ExpressionReader::unary(bool filters) {
  const Depth depth(*this);
  ExpressionPtr value;
  if (is_next(TokenKind::sign, "-")) {
    value = make(ExpressionKind::minus);
    take();
    value->parts.push_back(unary(false));
  } else {
    value = with_suffixes(skip(TokenKind::sign, "+") ? unary(false) : primary());
  }
  return filters ? with_filters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionReader::primary() {
  ExpressionPtr value = make(ExpressionKind::constant);
  if (next().kind == TokenKind::name) return named_value();
  if (next().kind == TokenKind::text) {
    std::string text;
    while (next().kind == TokenKind::text) text += take().text;
    value->constant = std::move(text);
    return value;
  }
  if (next().kind == TokenKind::integer || next().kind == TokenKind::real) {
    const Token& token = take();
    std::int64_t whole = 0;
    double real = 0;
    const char *begin = token.text.data(), *end = begin + token.text.size();
    const bool is_whole = token.kind == TokenKind::integer;
    const auto error = is_whole ? std::from_chars(begin, end, whole).ec : std::from_chars(begin, end, real).ec;
    if (error != std::errc()) refuse(in_quotes(token.text) + " is too large a number");
    value->constant = is_whole ? Value(whole) : Value(real);
    return value;
  }
  return bracketed();
}

ExpressionPtr ExpressionReader::named_value() {
  ExpressionPtr value = make(ExpressionKind::constant);
  const std::string name = take().text;
  if (name == "true" || name == "True" || name == "false" || name == "False")
    value->constant = name == "true" || name == "True";
  else if (name == "none" || name == "None")
    value->constant = None{};
  else
    value->kind = ExpressionKind::name;
  value->name = name;
  return value;
}

ExpressionPtr ExpressionReader::bracketed() {
  if (skip(TokenKind::sign, "[")) return list("]", ExpressionKind::list);
  if (skip(TokenKind::sign, "{")) return list("}", ExpressionKind::dict);
  if (!skip(TokenKind::sign, "(")) refuse("expected a value, not " + in_quotes(next().text));
  if (is_next(TokenKind::sign, ")")) return list(")", ExpressionKind::list);
  ExpressionPtr value = expression();
  expect_sign(")");
  return value;
}

ExpressionPtr ExpressionReader::list(std::string_view close, ExpressionKind kind) {
  ExpressionPtr value = make(kind);
  while (!skip(TokenKind::sign, close)) {
    value->parts.push_back(conditional());
    if (kind == ExpressionKind::dict) {
      expect_sign(":");
      value->parts.push_back(conditional());
    }
    if (!is_next(TokenKind::sign, close)) expect_sign(",");
  }
  return value;
}

}  // namespace dculab::engine::chat
