// A condition between keys, metrics and figures of a scenario: "workload.batch * workload.context_tokens <= 65536",
// "step_time <= 50 ms", "weights == f16".
//
//   condition  = sum ("<=" | ">=" | "<" | ">" | "==" | "!=") sum     words only beside == and !=, alone
//   sum        = product {("+" | "-") product}
//   product    = term {("*" | "/") term}
//   term       = number [unit] | name | "(" sum ")"
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/unit_text.hpp"

namespace dculab::config {

enum class Relation : std::uint8_t { at_most, at_least, below, above, equal, unequal };

class Condition {
 public:
  // A name is looked up when the condition is evaluated; `is_known` says which can be, any other is a word.
  // Throws InputError that says what is wrong with the text, without a place.
  [[nodiscard]] static Condition parse(const std::string& text,
                                       const std::function<bool(const std::string&)>& is_known);

  // The text of a key, or a metric's figure as text. Throws InputError where a number is needed and there is none.
  using LookUp = std::function<std::string(const std::string& name)>;
  [[nodiscard]] bool holds(const LookUp& look_up) const;

  // Throws InputError where `name` alone is compared with a number alone that is not in a unit of `dimension`. A 0
  // needs none.
  void require_unit(const std::string& name, Dimension dimension) const;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  friend class ConditionParser;

  enum class Kind : std::uint8_t { number, name, word, add, subtract, multiply, divide };
  struct Token {
    Kind kind = Kind::number;
    double number = 0;
    std::string text;
    std::optional<Dimension> dimension{};  // of the number's unit
  };
  using Sum = std::vector<Token>;  // in reverse Polish notation
  [[nodiscard]] static double value(const Sum& sum, const LookUp& look_up);

  std::string text_;
  Sum left_, right_;
  Relation relation_ = Relation::at_most;
};

}  // namespace dculab::config
