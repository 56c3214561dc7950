// The fields of /steps.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "bindings/http/step_history.hpp"
#include "present/output/field_json.hpp"

namespace dculab {

template <>
struct FieldList<http::SeenStep> {
  using Self = http::SeenStep;
  static constexpr std::string_view id = "seen_step";
  static constexpr std::string_view doc = "A step of the engine.";
  static constexpr auto fields = std::tuple(
      field("number", "from 1 on", unit::count, &Self::number), field("begin_seconds", "since the start", &Self::begin),
      field("sequences", "in the batch", unit::count, &Self::sequences),
      field("prefill_tokens", "of prompts", unit::tokens, &Self::prefill_tokens),
      field("context_tokens", "of all sequences, in the KV cache", unit::tokens, &Self::context_tokens),
      field("measured_seconds", "it took", &Self::measured),
      field("predicted_seconds", "the simulator's price", &Self::predicted));
};

template <>
struct FieldList<http::StepTotals> {
  using Self = http::StepTotals;
  static constexpr std::string_view id = "step_totals";
  static constexpr std::string_view doc = "Of all steps that were priced.";
  static constexpr auto fields = std::tuple(field("steps", "that were priced", unit::count, &Self::steps),
                                            field("unpriced", "others", unit::count, &Self::unpriced),
                                            field("measured_seconds", "they took", &Self::measured),
                                            field("predicted_seconds", "their prices", &Self::predicted));
};

template <>
struct FieldList<http::StepView> {
  using Self = http::StepView;
  static constexpr std::string_view id = "step_view";
  static constexpr std::string_view doc = "Predicted beside measured step times.";
  static constexpr auto fields =
      std::tuple(field("machine", "that prices", [](const Self& self) { return unless_empty(self.machine); }),
                 field("steps", "the last ones", &Self::steps), field("all", "steps since the start", &Self::all),
                 field("decodes", "of these, those without a prefill", &Self::decodes));
};

}  // namespace dculab
