#include "present/measure/completions_report.hpp"

#include <algorithm>

#include "config/unit_text.hpp"
#include "present/measure/completions_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Seconds median(std::vector<Seconds> values) {
  if (values.empty()) return Seconds{};
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

DraftFigures drafts_of_report(const ServingReport& report) {
  return {.counts = report.drafts, .drafting = report.drafting, .verifying = report.executor_time};
}

const char* finish_text(const engine::Completion& completion) {
  if (!completion.refusal.empty()) return "refused";
  return completion.finish_reason == FinishReason::stop ? "stop" : "length";
}

Report completions_report(const std::vector<std::string>& prompts, const engine::Generation& generation) {
  Report report = report_of("dculab/run/1", ReportedGeneration{prompts, generation});
  Table table;
  table.columns = {"prompt", "completion", "tokens", "finished by", "error"};
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    const engine::Completion& completion = generation.completions[index];
    table.rows.push_back({prompts[index], completion.text, std::to_string(completion.token_ids.size()),
                          finish_text(completion), completion.refusal});
  }
  report.tables.push_back(std::move(table));
  return report;
}

Report text_report(const std::vector<std::string>& prompts, const engine::Generation& generation) {
  Report report;
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    const engine::Completion& completion = generation.completions[index];
    const std::string text =
        completion.refusal.empty() ? prompts[index] + completion.text : "refused: " + completion.refusal;
    if (prompts.size() == 1)
      report.heading = {text};
    else
      report.heading.insert(report.heading.end(), {"[" + std::to_string(index + 1) + "] " + text, ""});
  }
  return report;
}

std::string serving_summary(const ServingReport& report) {
  std::vector<Seconds> ttft, tpot;
  for (const RequestStats& request : report.requests) {
    ttft.push_back(request.ttft);
    if (request.num_generated > 1) tpot.push_back(request.tpot);
  }
  std::string text = std::to_string(report.num_prompt_tokens) + " prompt tokens, " +
                     std::to_string(report.num_generated_tokens) + " generated in " +
                     config::short_text(report.duration) + " (" +
                     number(static_cast<double>(report.num_generated_tokens) / report.duration.value()) +
                     " tokens/s); median TTFT " + config::short_text(median(ttft));
  if (!tpot.empty()) text += ", TPOT " + config::short_text(median(tpot));
  if (report.num_cached_tokens > 0)
    text += "; " + std::to_string(report.num_cached_tokens) + " prompt tokens were cached";
  if (const std::int64_t skipped = report.num_padding_tokens + report.num_duplicate_tokens; skipped > 0)
    text += "; " + std::to_string(skipped) + " tokens were skipped (" + std::to_string(report.num_padding_tokens) +
            " of padding, " + std::to_string(report.num_duplicate_tokens) + " of duplicate prompts)";
  if (report.num_preemptions > 0) text += "; " + std::to_string(report.num_preemptions) + " preemptions";
  if (report.swaps.preemptions > 0) text += ", " + std::to_string(report.swaps.preemptions) + " of them by swap";
  if (report.drafts.num_drafts > 0) text += "\n" + draft_summary(drafts_of_report(report));
  return text;
}

}  // namespace dculab::present
