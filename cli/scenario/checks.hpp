// What an option's value may be, refused in words: CLI11's own checks print the limits of a double.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "config/scenario_file.hpp"

namespace dculab::cli {

[[nodiscard]] inline CLI::Validator between(int lowest, std::optional<int> highest) {
  const auto check = [lowest, highest](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return "'" + text + "' is not a number";
    if (value >= lowest && (!highest || value <= *highest)) return "";
    const std::string most = highest ? " and at most " + std::to_string(*highest) : "";
    return "must be at least " + std::to_string(lowest) + most + ", not " + text;
  };
  return CLI::Validator(check, "");
}

[[nodiscard]] inline CLI::Validator at_least(int lowest) { return between(lowest, std::nullopt); }

[[nodiscard]] inline CLI::Validator thread_count() { return between(0, config::kMostThreads); }

}  // namespace dculab::cli
