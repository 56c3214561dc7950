// The fields of what a sweep of steps says of a machine: points, the recommended KV heads and block size, models.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/values/verdict_text.hpp"
#include "study/decide/compared_models.hpp"
#include "study/decide/step_study.hpp"

namespace dculab::present {

// A number of KV heads with a block size.
struct ReportedChoice {
  sim::Choice choice;
  Seconds step;  // geometric mean over the workloads
};

struct ReportedOwnHeads {
  ReportedChoice choice;
  double slower = 0;
};

// Of a sweep with several.
struct ReportedStepDecision {
  ReportedChoice choice;
  ReportedChoice fastest;
  std::optional<ReportedOwnHeads> own{};  // where the sweep has the model's own KV heads, and they fit
  std::string kv_heads_by{};
  ReportedCosts block_sizes{};
  std::vector<ReportedChoice> kv_heads_front{};
};

// A model at the batches of a sweep.
struct ReportedModel {
  const study::SweptModel& model;
  const std::vector<int>& batches;
};

struct ReportedModelStep {
  int batch = 0;
  Seconds step;
};

struct ReportedModels {
  std::string at;  // "context 4096, KV dtype fp8_e4m3"
  const study::ModelComparison& comparison;
  const std::vector<int>& batches;
};
[[nodiscard]] std::vector<ReportedModels> reported_models(const study::SweptModels& models);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedChoice> {
  using Choice = present::ReportedChoice;
  static constexpr std::string_view id = "choice";
  static constexpr std::string_view doc = "A number of KV heads with a block size.";
  static constexpr auto fields = std::tuple(
      field("num_key_value_heads", "of a layer", unit::count, [](const Choice& each) { return each.choice.kv_heads; }),
      field("block_size", "of the KV cache", unit::tokens, [](const Choice& each) { return each.choice.block_size; }),
      field("step_seconds", "of a step with them, geometric mean over the workloads", &Choice::step));
};

template <>
struct FieldList<present::ReportedOwnHeads> {
  static constexpr std::string_view id = "own_kv_heads";
  static constexpr std::string_view doc = "The model's own KV heads.";
  static constexpr auto fields =
      std::tuple(inlined(&present::ReportedOwnHeads::choice),
                 field("slower", "than the recommended ones", unit::share, &present::ReportedOwnHeads::slower));
};

template <>
struct FieldList<present::ReportedStepDecision> {
  using Self = present::ReportedStepDecision;
  static constexpr std::string_view id = "step_decision";
  static constexpr std::string_view doc = "The recommended KV heads and block size.";
  static constexpr auto fields = std::tuple(
      inlined(&Self::choice), field("fastest", "of all", &Self::fastest),
      field("own_kv_heads", "where the sweep has them and they fit", &Self::own),
      field("kv_heads_by", "what decided the number of KV heads", one_of("accuracy", "own"), &Self::kv_heads_by),
      field("block_sizes", "with these KV heads", &Self::block_sizes),
      field("kv_heads_front", "faster than all that keep more KV heads, the most first", &Self::kv_heads_front));
};

template <>
struct FieldList<present::ReportedModelStep> {
  using Step = present::ReportedModelStep;
  static constexpr std::string_view id = "model_step";
  static constexpr std::string_view doc = "A step of a model.";
  static constexpr auto fields = std::tuple(field("batch", "sequences", unit::count, &Step::batch),
                                            field("step_seconds", "predicted time", &Step::step));
};

template <>
struct FieldList<present::ReportedModel> {
  using Self = present::ReportedModel;
  static constexpr std::string_view id = "swept_model";
  static constexpr std::string_view doc = "A model with the block size that is best for it.";

  // At the batches that it has room for.
  [[nodiscard]] static std::vector<present::ReportedModelStep> steps(const Self& reported) {
    std::vector<present::ReportedModelStep> steps;
    for (std::size_t index = 0; index < reported.batches.size(); ++index)
      if (reported.model.steps[index]) steps.push_back({reported.batches[index], *reported.model.steps[index]});
    return steps;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Self& reported) { return reported.model.compared.name; }),
      field("block_size", "of the KV cache", unit::tokens,
            [](const Self& reported) { return reported.model.block_size; }),
      field("indistinguishable", "block sizes that cannot be told apart from it, it included", unit::tokens,
            [](const Self& reported) { return reported.model.tied_blocks; }),
      field("kv_bytes_per_token", "of K and V", [](const Self& reported) { return reported.model.kv_bytes_per_token; }),
      field("kv_cache_tokens", "that fit in memory", unit::tokens,
            [](const Self& reported) { return reported.model.kv_cache_tokens; }),
      field("max_sequences", "that fit in memory", unit::count,
            [](const Self& reported) { return reported.model.compared.max_sequences; }),
      field("steps", "at the batches that it has room for", &steps),
      field("tokens_per_second", "of a step of max_sequences", unit::tokens_per_second,
            [](const Self& reported) { return reported.model.tokens_per_second; }));
};

template <>
struct FieldList<study::ModelChange> {
  using Change = study::ModelChange;
  static constexpr std::string_view id = "order_change";
  static constexpr std::string_view doc = "A batch from which one model is faster than another that was faster before.";
  static constexpr auto fields =
      std::tuple(field("batch", "the first", unit::count, [](const Change& change) { return change.order.batch; }),
                 field("faster", "the model that is faster from there on",
                       [](const Change& change) { return change.order.faster; }),
                 field("slower", "the other model", [](const Change& change) { return change.order.slower; }),
                 field("last_batch", "the largest of the sweep that both have room for", unit::count,
                       [](const Change& change) { return change.order.last; }),
                 field("lead", "how much faster it is at that batch", unit::share,
                       [](const Change& change) { return change.lead.value; }),
                 field("lead_interval", "90 %", unit::share,
                       [](const Change& change) { return interval(change.lead.low, change.lead.high); }));
};

template <>
struct FieldList<present::ReportedModels> {
  using Self = present::ReportedModels;
  static constexpr std::string_view id = "model_comparison";
  static constexpr std::string_view doc = "Models at one point of the axes other than model, batch and block size.";

  [[nodiscard]] static std::vector<present::ReportedModel> lines(const Self& reported) {
    std::vector<present::ReportedModel> lines;
    for (const study::SweptModel& model : reported.comparison.models) lines.push_back({model, reported.batches});
    return lines;
  }

  static constexpr auto fields =
      std::tuple(field("at", "that point, in words", &Self::at), field("lines", "a line for each model", &lines),
                 field("order_changes", "where two of them change places",
                       [](const Self& reported) { return reported.comparison.changes; }));
};

}  // namespace dculab
