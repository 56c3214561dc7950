// The fields of what `dculab run` answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/generate/generator.hpp"
#include "present/output/field_json.hpp"
#include "present/values/draft_report.hpp"

namespace dculab::present {

struct ToldCompletion {
  const std::string& prompt;
  const engine::Completion& completion;
};

struct ToldGeneration {
  const std::vector<std::string>& prompts;  // of each completion
  const engine::Generation& generation;
};

// "stop", "length" or "refused".
[[nodiscard]] const char* finish_text(const engine::Completion& completion);

[[nodiscard]] DraftFigures drafts_of_report(const ServingReport& report);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldCompletion> {
  using Told = present::ToldCompletion;
  static constexpr std::string_view id = "completion";
  static constexpr std::string_view doc = "What follows a prompt.";
  static constexpr auto fields = std::tuple(
      field("prompt", "the text", [](const Told& told) { return told.prompt; }),
      field("text", "that follows, special tokens left out", [](const Told& told) { return told.completion.text; }),
      field("token_ids", "the stop token included", [](const Told& told) { return told.completion.token_ids; }),
      field("finish_reason", "what ended it", one_of("stop", "length", "refused"),
            [](const Told& told) { return present::finish_text(told.completion); }),
      field("error", "why it was refused", [](const Told& told) {
        return when(!told.completion.refusal.empty(), [&] { return told.completion.refusal; });
      }));
};

template <>
struct FieldList<ServingReport> {
  using Served = ServingReport;
  static constexpr std::string_view id = "serving_statistics";
  static constexpr std::string_view doc = "What serving the requests took.";

  // A count that is told where it is not 0.
  [[nodiscard]] static std::optional<std::int64_t> some(std::int64_t count) {
    return when(count > 0, [count] { return count; });
  }

  static constexpr auto fields = std::tuple(
      field("prompt_tokens", "once for all samples of a request", unit::tokens, &Served::num_prompt_tokens),
      field("cached_prompt_tokens", "of these, found by prefix caching", unit::tokens, &Served::num_cached_tokens),
      field("generated_tokens", "of all answers", unit::tokens, &Served::num_generated_tokens),
      field("duration_seconds", "from the first arrival to the last token", &Served::duration),
      field("steps", "of the model", unit::count, &Served::num_steps),
      field("preemptions", "of running requests", unit::count, &Served::num_preemptions),
      field("swaps", "of these, by swap", unit::count,
            [](const Served& served) { return some(served.swaps.preemptions); }),
      field("skipped_padding_tokens", "of padding, whose K and V were not written", unit::tokens,
            [](const Served& served) { return some(served.num_padding_tokens); }),
      field("skipped_duplicate_tokens", "of prompts that another request had, whose K and V were not written",
            unit::tokens, [](const Served& served) { return some(served.num_duplicate_tokens); }));
};

template <>
struct FieldList<present::ToldGeneration> {
  using Told = present::ToldGeneration;
  static constexpr std::string_view id = "generation";
  static constexpr std::string_view doc = "Text that the engine generated.";

  [[nodiscard]] static std::vector<present::ToldCompletion> completions(const Told& told) {
    std::vector<present::ToldCompletion> completions;
    for (std::size_t index = 0; index < told.prompts.size(); ++index)
      completions.push_back({told.prompts[index], told.generation.completions[index]});
    return completions;
  }

  static constexpr auto fields =
      std::tuple(field("completions", "in the order of the prompts", &completions),
                 field("statistics", "of all of them", [](const Told& told) { return told.generation.report; }),
                 field("speculation", "where something was drafted", [](const Told& told) {
                   const ServingReport& served = told.generation.report;
                   return when(served.drafts.num_drafts > 0, [&] { return present::drafts_of_report(served); });
                 }));
};

}  // namespace dculab
