// The fields of what `dculab bench` measured of a grid of steps.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/trace.hpp"
#include "present/values/expert_report.hpp"
#include "present/values/retention_fields.hpp"

namespace dculab::present {

// All sequences of the step are alike.
struct ReportedStep {
  const TraceStep& step;
  bool retains = false;  // some step of the trace drops tokens
  bool mixture = false;  // the model has experts

  [[nodiscard]] const SequenceSlice& slice() const { return step.batch.sequences.front(); }
  // Nothing of the other phase.
  [[nodiscard]] std::optional<double> tokens_per_second(Phase phase) const {
    if (slice().phase != phase) return std::nullopt;
    return static_cast<double>(step.batch.num_tokens()) / step.duration.value();
  }
};

struct ReportedTrace {
  const Trace& trace;

  [[nodiscard]] std::vector<ReportedStep> steps() const {
    const bool retains = std::ranges::any_of(
        trace.steps, [](const TraceStep& step) { return step.options.kv_retention.policy != RetentionPolicy::all; });
    const bool mixture = std::ranges::any_of(trace.steps, [](const auto& step) { return !step.experts.is_empty(); });
    std::vector<ReportedStep> reported;
    for (const TraceStep& step : trace.steps) reported.push_back({step, retains, mixture});
    return reported;
  }
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedStep> {
  using Self = present::ReportedStep;
  static constexpr std::string_view id = "measured_step";
  static constexpr std::string_view doc = "A step that was measured.";
  static constexpr auto fields = std::tuple(
      field("id", "of the step in the trace", [](const Self& reported) { return reported.step.id; }),
      field("phase", "of its sequences", one_of("decode", "prefill"),
            [](const Self& reported) { return reported.slice().phase == Phase::decode ? "decode" : "prefill"; }),
      field("num_key_value_heads", "of a layer", unit::count,
            [](const Self& reported) { return reported.step.model.heads().num_key_value_heads; }),
      field("block_size", "of the KV cache", unit::tokens,
            [](const Self& reported) { return reported.step.options.block_size; }),
      field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
            [](const Self& reported) { return name(reported.step.options.kv_cache_dtype); }),
      field("context_tokens", "of each sequence, with the new ones", unit::tokens,
            [](const Self& reported) { return reported.slice().context_tokens(); }),
      field("batch", "sequences", unit::count,
            [](const Self& reported) { return static_cast<double>(reported.step.batch.sequences.size()); }),
      field("step_seconds", "median of the repeats", [](const Self& reported) { return reported.step.duration; }),
      field("spread_seconds", "half the interquartile range of the repeats",
            [](const Self& reported) { return reported.step.spread; }),
      field("decode_tokens_per_second", "of a decode", unit::tokens_per_second,
            [](const Self& reported) { return reported.tokens_per_second(Phase::decode); }),
      field("prefill_tokens_per_second", "of a prefill", unit::tokens_per_second,
            [](const Self& reported) { return reported.tokens_per_second(Phase::prefill); }),
      field("kv_retention", "where some step drops tokens",
            [](const Self& reported) {
              return when(reported.retains, [&] { return reported.step.options.kv_retention; });
            }),
      field("experts", "of a mixture",
            [](const Self& reported) { return when(reported.mixture, [&] { return reported.step.experts; }); }));
};

template <>
struct FieldList<present::ReportedTrace> {
  static constexpr std::string_view id = "measured_steps";
  static constexpr std::string_view doc = "Steps that this machine's engine ran.";
  static constexpr std::string_view csv_rows = "points";
  static constexpr auto fields = std::tuple(field("points", "of the grid", &present::ReportedTrace::steps));
};

}  // namespace dculab
