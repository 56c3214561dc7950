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
struct ToldStep {
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

struct ToldTrace {
  const Trace& trace;

  [[nodiscard]] std::vector<ToldStep> steps() const {
    const bool retains = std::ranges::any_of(
        trace.steps, [](const TraceStep& step) { return step.options.kv_retention.policy != RetentionPolicy::all; });
    const bool mixture = std::ranges::any_of(trace.steps, [](const auto& step) { return !step.experts.is_empty(); });
    std::vector<ToldStep> told;
    for (const TraceStep& step : trace.steps) told.push_back({step, retains, mixture});
    return told;
  }
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldStep> {
  using Told = present::ToldStep;
  static constexpr std::string_view id = "measured_step";
  static constexpr std::string_view doc = "A step that was measured.";
  static constexpr auto fields = std::tuple(
      field("id", "of the step in the trace", [](const Told& told) { return told.step.id; }),
      field("phase", "of its sequences", one_of("decode", "prefill"),
            [](const Told& told) { return told.slice().phase == Phase::decode ? "decode" : "prefill"; }),
      field("num_key_value_heads", "of a layer", unit::count,
            [](const Told& told) { return told.step.model.heads().num_key_value_heads; }),
      field("block_size", "of the KV cache", unit::tokens,
            [](const Told& told) { return told.step.options.block_size; }),
      field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
            [](const Told& told) { return name(told.step.options.kv_cache_dtype); }),
      field("context_tokens", "of each sequence, with the new ones", unit::tokens,
            [](const Told& told) { return told.slice().context_tokens(); }),
      field("batch", "sequences", unit::count,
            [](const Told& told) { return static_cast<double>(told.step.batch.sequences.size()); }),
      field("step_seconds", "median of the repeats", [](const Told& told) { return told.step.duration; }),
      field("spread_seconds", "half the interquartile range of the repeats",
            [](const Told& told) { return told.step.spread; }),
      field("decode_tokens_per_second", "of a decode", unit::tokens_per_second,
            [](const Told& told) { return told.tokens_per_second(Phase::decode); }),
      field("prefill_tokens_per_second", "of a prefill", unit::tokens_per_second,
            [](const Told& told) { return told.tokens_per_second(Phase::prefill); }),
      field("kv_retention", "where some step drops tokens",
            [](const Told& told) { return when(told.retains, [&] { return told.step.options.kv_retention; }); }),
      field("experts", "of a mixture",
            [](const Told& told) { return when(told.mixture, [&] { return told.step.experts; }); }));
};

template <>
struct FieldList<present::ToldTrace> {
  static constexpr std::string_view id = "measured_steps";
  static constexpr std::string_view doc = "Steps that this machine's engine ran.";
  static constexpr auto fields = std::tuple(field("points", "of the grid", &present::ToldTrace::steps));
};

}  // namespace dculab
