#include "config/condition.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

constexpr int kDeepest = 32;
constexpr std::array<std::pair<std::string_view, Relation>, 6> kRelations{{{"<=", Relation::at_most},
                                                                           {">=", Relation::at_least},
                                                                           {"==", Relation::equal},
                                                                           {"!=", Relation::unequal},
                                                                           {"<", Relation::below},
                                                                           {">", Relation::above}}};

[[nodiscard]] bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// The longest unit that `text` begins with; null where none does.
[[nodiscard]] const Unit* leading_unit(std::string_view text) {
  const Unit* found = nullptr;
  for (const Unit& unit : units()) {
    const bool ends =
        text.size() == unit.symbol.size() || !is_letter(text[std::min(unit.symbol.size(), text.size() - 1)]);
    if (text.starts_with(unit.symbol) && ends && (found == nullptr || unit.symbol.size() > found->symbol.size()))
      found = &unit;
  }
  return found;
}

// "512 GB/s" in core units, or nothing; `text` loses what was read.
[[nodiscard]] bool read_number(std::string_view& text, double& number, std::optional<Dimension>* dimension = nullptr) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::string_view rest = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  if (const Unit* unit = rest.empty() ? nullptr : leading_unit(rest)) {
    number *= unit->factor;
    if (dimension != nullptr) *dimension = unit->dimension;
    text = rest.substr(unit->symbol.size());
  }
  return true;
}

}  // namespace

class ConditionParser {
 public:
  ConditionParser(const std::string& text, const std::function<bool(const std::string&)>& is_known)
      : whole_(text), rest_(text), is_known_(is_known) {}

  Condition parse() {
    Condition condition;
    condition.text_ = whole_;
    condition.left_ = sum(0);
    condition.relation_ = relation();
    condition.right_ = sum(0);
    skip_blanks();
    if (!rest_.empty()) refuse("has " + in_quotes(rest_) + " left over");
    const bool takes_words = (condition.relation_ == Relation::equal || condition.relation_ == Relation::unequal) &&
                             condition.left_.size() == 1 && condition.right_.size() == 1;
    for (const Condition::Sum* side : {&condition.left_, &condition.right_})
      for (const Condition::Token& token : *side)
        if (token.kind == Condition::Kind::word && !takes_words)
          refuse("names " + in_quotes(token.text) +
                 ", which is neither a metric nor a key that the scenario states or sweeps");
    return condition;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(in_quotes(whole_) + " " + why + "; write for example 'workload.batch <= max_sequences'");
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  [[nodiscard]] bool take(char wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  Relation relation() {
    skip_blanks();
    for (const auto& [sign, relation] : kRelations)
      if (rest_.starts_with(sign)) {
        rest_.remove_prefix(sign.size());
        return relation;
      }
    refuse("has no <=, >=, <, >, == or != where one should stand");
  }

  Condition::Sum sum(int depth) {
    Condition::Sum tokens = product(depth);
    for (bool more = true; more;) {
      more = false;
      for (const auto& [sign, kind] : {std::pair{'+', Condition::Kind::add}, {'-', Condition::Kind::subtract}})
        if (!more && take(sign)) more = append(tokens, product(depth), kind);
    }
    return tokens;
  }

  Condition::Sum product(int depth) {
    Condition::Sum tokens = term(depth);
    for (bool more = true; more;) {
      more = false;
      for (const auto& [sign, kind] : {std::pair{'*', Condition::Kind::multiply}, {'/', Condition::Kind::divide}})
        if (!more && take(sign)) more = append(tokens, term(depth), kind);
    }
    return tokens;
  }

  static bool append(Condition::Sum& tokens, const Condition::Sum& more, Condition::Kind kind) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    tokens.push_back({kind, 0, ""});
    return true;
  }

  Condition::Sum term(int depth) {
    if (depth > kDeepest) refuse("has too many brackets");
    if (take('(')) {
      Condition::Sum inner = sum(depth + 1);
      if (!take(')')) refuse("has a bracket that is not closed");
      return inner;
    }
    skip_blanks();
    Condition::Token token;
    if (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      if (!read_number(rest_, token.number, &token.dimension)) refuse("has a number that cannot be read");
      return {token};
    }
    const auto letter_ends =
        std::find_if_not(rest_.begin(), rest_.end(), [](char c) { return is_letter(c) || c == '-'; });
    token.text = rest_.substr(0, static_cast<std::size_t>(letter_ends - rest_.begin()));
    // A minus belongs to a word such as gptq-int4, and between names it subtracts.
    if (!is_known_(token.text) && is_known_(token.text.substr(0, token.text.find('-'))))
      token.text = token.text.substr(0, token.text.find('-'));
    if (token.text.empty()) refuse("lacks a number or a name");
    token.kind = is_known_(token.text) ? Condition::Kind::name : Condition::Kind::word;
    rest_.remove_prefix(token.text.size());
    return {token};
  }

  const std::string& whole_;
  std::string_view rest_;
  const std::function<bool(const std::string&)>& is_known_;
};

Condition Condition::parse(const std::string& text, const std::function<bool(const std::string&)>& is_known) {
  return ConditionParser(text, is_known).parse();
}

double Condition::value(const Sum& sum, const LookUp& look_up) {
  std::vector<double> stack;
  for (const Token& token : sum) {
    if (token.kind == Kind::number || token.kind == Kind::name) {
      stack.push_back(token.number);
      if (token.kind == Kind::number) continue;
      const std::string text = look_up(token.text);
      std::string_view rest = text;
      if (!read_number(rest, stack.back()) || !rest.empty())
        throw InputError(token.text + " is " + in_quotes(text) + ", which is not a number");
      continue;
    }
    const double right = stack.back();
    stack.pop_back();
    double& left = stack.back();
    if (token.kind == Kind::add) left += right;
    if (token.kind == Kind::subtract) left -= right;
    if (token.kind == Kind::multiply) left *= right;
    if (token.kind == Kind::divide) left /= right;
  }
  return stack.front();
}

bool Condition::holds(const LookUp& look_up) const {
  const auto is_word = [](const Sum& sum) { return sum.front().kind == Kind::word; };
  if (is_word(left_) || is_word(right_)) {
    const auto text = [&look_up](const Sum& sum) {
      return sum.front().kind == Kind::name ? look_up(sum.front().text) : sum.front().text;
    };
    return (text(left_) == text(right_)) == (relation_ == Relation::equal);
  }
  const double left = value(left_, look_up), right = value(right_, look_up);
  switch (relation_) {
    case Relation::at_most:
      return left <= right;
    case Relation::at_least:
      return left >= right;
    case Relation::below:
      return left < right;
    case Relation::above:
      return left > right;
    case Relation::equal:
      return left == right;
    case Relation::unequal:
      return left != right;
  }
  return false;
}

void Condition::require_unit(const std::string& name, Dimension dimension) const {
  for (const auto& [one, other] : {std::pair(&left_, &right_), {&right_, &left_}}) {
    if (one->size() != 1 || other->size() != 1) continue;
    const Token &named = one->front(), &number = other->front();
    if (named.kind != Kind::name || named.text != name || number.kind != Kind::number || number.number == 0) continue;
    if (number.dimension != dimension)
      throw InputError(in_quotes(text_) + " compares " + name + " with a number " +
                       (number.dimension ? "in another unit" : "without a unit") + "; write for example '" + name +
                       (dimension == Dimension::seconds  ? " <= 50 ms'"
                        : dimension == Dimension::energy ? " <= 0.5 J'"
                                                         : " <= 2 GB'"));
  }
}

std::vector<std::string> Condition::names() const {
  std::vector<std::string> names;
  for (const Sum* side : {&left_, &right_})
    for (const Token& token : *side)
      if (token.kind == Kind::name) names.push_back(token.text);
  return names;
}

}  // namespace dculab::config
