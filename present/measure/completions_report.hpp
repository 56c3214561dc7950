// What `run` says of generated text: beside each prompt, and of all of it.
#pragma once

#include <string>
#include <vector>

#include "engine/generate/generator.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// For programs: a row for each completion; `prompts` has the prompt of each.
[[nodiscard]] Report completions_report(const std::vector<std::string>& prompts, const engine::Generation& generation);

// For people: prompts and what follows.
[[nodiscard]] Report text_report(const std::vector<std::string>& prompts, const engine::Generation& generation);

// Tokens, times and rates in one line.
[[nodiscard]] std::string serving_summary(const ServingReport& report);

}  // namespace dculab::present
