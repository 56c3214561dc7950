// What an option's value may be, refused in words: CLI11's own checks print the limits of a double; and which options
// do nothing.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "config/scenario_file.hpp"
#include "core/allowed_numbers.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"

namespace dculab::cli {

// `words`: what the number must be, for which `holds` is true.
template <class Holds>
[[nodiscard]] CLI::Validator number_that_is(const std::string& words, Holds holds) {
  const auto check = [words, holds](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return "'" + text + "' is not a number";
    return holds(value) ? "" : "must be " + words + ", not " + text;
  };
  return CLI::Validator(check, "");
}

// A whole number, written in digits: "4k" and "1e3" are refused with what they may mean.
[[nodiscard]] inline CLI::Validator between(int lowest, std::optional<int> highest) {
  const std::string most = highest ? " and at most " + std::to_string(*highest) : "";
  const CLI::Validator range =
      number_that_is("at least " + std::to_string(lowest) + most,
                     [lowest, highest](double value) { return value >= lowest && (!highest || value <= *highest); });
  const auto check = [range](std::string text) -> std::string {
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    if (text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos) return range(text);
    const std::string meant = whole_number_meant(text);
    return in_quotes(text) + " is not a whole number" + (meant.empty() ? "" : "; write " + meant);
  };
  return CLI::Validator(check, "");
}

[[nodiscard]] inline CLI::Validator at_least(int lowest) { return between(lowest, std::nullopt); }

[[nodiscard]] inline CLI::Validator fraction() {
  return number_that_is("above 0 and at most 1", [](double value) { return value > 0 && value <= 1; });
}

[[nodiscard]] inline CLI::Validator thread_count() { return between(0, config::kMostThreads); }

// An option that was given and does nothing beside the others is a slip. `beside`: "with --method mean". Throws
// InputError.
inline void refuse_idle(const CLI::App& command, const char* option, bool idle, const std::string& beside) {
  if (idle && command.get_option(option)->count() > 0) throw InputError(option, "does nothing " + beside);
}

}  // namespace dculab::cli
