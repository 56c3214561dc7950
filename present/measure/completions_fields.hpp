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

struct ReportedCompletion {
  const std::string& prompt;
  const engine::Completion& completion;
};

struct ReportedGeneration {
  const std::vector<std::string>& prompts;  // of each completion
  const engine::Generation& generation;
};

// "stop", "length" or "refused".
[[nodiscard]] const char* finish_text(const engine::Completion& completion);

[[nodiscard]] DraftFigures drafts_of_report(const ServingReport& report);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedCompletion> {
  using Self = present::ReportedCompletion;
  static constexpr std::string_view id = "completion";
  static constexpr std::string_view doc = "What follows a prompt.";
  static constexpr auto fields = std::tuple(
      field("prompt", "the text", [](const Self& reported) { return reported.prompt; }),
      field("text", "that follows, special tokens left out",
            [](const Self& reported) { return reported.completion.text; }),
      field("token_ids", "the stop token included", [](const Self& reported) { return reported.completion.token_ids; }),
      field("finish_reason", "what ended it", one_of("stop", "length", "refused"),
            [](const Self& reported) { return present::finish_text(reported.completion); }),
      field("error", "why it was refused", [](const Self& reported) {
        return when(!reported.completion.refusal.empty(), [&] { return reported.completion.refusal; });
      }));
};

template <>
struct FieldList<ServingReport> {
  using Served = ServingReport;
  static constexpr std::string_view id = "serving_statistics";
  static constexpr std::string_view doc = "What serving the requests took.";

  // A count that is reported only where it is not 0.
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
struct FieldList<present::ReportedGeneration> {
  using Self = present::ReportedGeneration;
  static constexpr std::string_view id = "generation";
  static constexpr std::string_view doc = "Text that the engine generated.";
  static constexpr std::string_view csv_rows = "completions";

  [[nodiscard]] static std::vector<present::ReportedCompletion> completions(const Self& reported) {
    std::vector<present::ReportedCompletion> completions;
    for (std::size_t index = 0; index < reported.prompts.size(); ++index)
      completions.push_back({reported.prompts[index], reported.generation.completions[index]});
    return completions;
  }

  static constexpr auto fields =
      std::tuple(field("completions", "in the order of the prompts", &completions),
                 field("statistics", "of all of them", [](const Self& reported) { return reported.generation.report; }),
                 field("speculation", "where something was drafted", [](const Self& reported) {
                   const ServingReport& served = reported.generation.report;
                   return when(served.drafts.num_drafts > 0, [&] { return present::drafts_of_report(served); });
                 }));
};

}  // namespace dculab
