// What an option's value may be, refused in words: CLI11's own checks print the limits of a double.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

namespace dculab::cli {

[[nodiscard]] inline CLI::Validator at_least(int lowest) {
  const auto check = [lowest](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return "'" + text + "' is not a number";
    return value >= lowest ? "" : "must be at least " + std::to_string(lowest) + ", not " + text;
  };
  return CLI::Validator(check, "");
}

}  // namespace dculab::cli
