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
struct ToldChoice {
  sim::Choice choice;
  Seconds step;  // geometric mean over the workloads
};

struct ToldOwnHeads {
  ToldChoice choice;
  double slower = 0;
};

// Of a sweep with several.
struct ToldStepDecision {
  ToldChoice choice;
  ToldChoice fastest;
  std::optional<ToldOwnHeads> own{};  // where the sweep has the model's own KV heads, and they fit
  std::string kv_heads_by{};
  ToldCosts block_sizes{};
  std::vector<ToldChoice> kv_heads_front{};
};

// A model at the batches of a sweep.
struct ToldModel {
  const study::SweptModel& model;
  const std::vector<int>& batches;
};

struct ToldModelStep {
  int batch = 0;
  Seconds step;
};

struct ToldModels {
  std::string at;  // "context 4096, KV dtype fp8_e4m3"
  const study::ModelComparison& comparison;
  const std::vector<int>& batches;
};
[[nodiscard]] std::vector<ToldModels> told_models(const study::SweptModels& models);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldChoice> {
  using Choice = present::ToldChoice;
  static constexpr std::string_view id = "choice";
  static constexpr std::string_view doc = "A number of KV heads with a block size.";
  static constexpr auto fields = std::tuple(
      field("num_key_value_heads", "of a layer", unit::count, [](const Choice& each) { return each.choice.kv_heads; }),
      field("block_size", "of the KV cache", unit::tokens, [](const Choice& each) { return each.choice.block_size; }),
      field("step_seconds", "of a step with them, geometric mean over the workloads", &Choice::step));
};

template <>
struct FieldList<present::ToldOwnHeads> {
  static constexpr std::string_view id = "own_kv_heads";
  static constexpr std::string_view doc = "The model's own KV heads.";
  static constexpr auto fields =
      std::tuple(inlined(&present::ToldOwnHeads::choice),
                 field("slower", "than the recommended ones", unit::share, &present::ToldOwnHeads::slower));
};

template <>
struct FieldList<present::ToldStepDecision> {
  using Told = present::ToldStepDecision;
  static constexpr std::string_view id = "step_decision";
  static constexpr std::string_view doc = "The recommended KV heads and block size.";
  static constexpr auto fields = std::tuple(
      inlined(&Told::choice), field("fastest", "of all", &Told::fastest),
      field("own_kv_heads", "where the sweep has them and they fit", &Told::own),
      field("kv_heads_by", "what decided the number of KV heads", one_of("accuracy", "own"), &Told::kv_heads_by),
      field("block_sizes", "with these KV heads", &Told::block_sizes),
      field("kv_heads_front", "faster than all that keep more KV heads, the most first", &Told::kv_heads_front));
};

template <>
struct FieldList<present::ToldModelStep> {
  using Step = present::ToldModelStep;
  static constexpr std::string_view id = "model_step";
  static constexpr std::string_view doc = "A step of a model.";
  static constexpr auto fields = std::tuple(field("batch", "sequences", unit::count, &Step::batch),
                                            field("step_seconds", "predicted time", &Step::step));
};

template <>
struct FieldList<present::ToldModel> {
  using Told = present::ToldModel;
  static constexpr std::string_view id = "swept_model";
  static constexpr std::string_view doc = "A model with the block size that is best for it.";

  // At the batches that it has room for.
  [[nodiscard]] static std::vector<present::ToldModelStep> steps(const Told& told) {
    std::vector<present::ToldModelStep> steps;
    for (std::size_t index = 0; index < told.batches.size(); ++index)
      if (told.model.steps[index]) steps.push_back({told.batches[index], *told.model.steps[index]});
    return steps;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Told& told) { return told.model.compared.name; }),
      field("block_size", "of the KV cache", unit::tokens, [](const Told& told) { return told.model.block_size; }),
      field("indistinguishable", "block sizes that cannot be told apart from it, it included", unit::tokens,
            [](const Told& told) { return told.model.tied_blocks; }),
      field("kv_bytes_per_token", "of K and V", [](const Told& told) { return told.model.kv_bytes_per_token; }),
      field("kv_cache_tokens", "that fit in memory", unit::tokens,
            [](const Told& told) { return told.model.kv_cache_tokens; }),
      field("max_sequences", "that fit in memory", unit::count,
            [](const Told& told) { return told.model.compared.max_sequences; }),
      field("steps", "at the batches that it has room for", &steps),
      field("tokens_per_second", "of a step of max_sequences", unit::tokens_per_second,
            [](const Told& told) { return told.model.tokens_per_second; }));
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
struct FieldList<present::ToldModels> {
  using Told = present::ToldModels;
  static constexpr std::string_view id = "model_comparison";
  static constexpr std::string_view doc = "Models at one point of the axes other than model, batch and block size.";

  [[nodiscard]] static std::vector<present::ToldModel> lines(const Told& told) {
    std::vector<present::ToldModel> lines;
    for (const study::SweptModel& model : told.comparison.models) lines.push_back({model, told.batches});
    return lines;
  }

  static constexpr auto fields =
      std::tuple(field("at", "that point, in words", &Told::at), field("lines", "a line for each model", &lines),
                 field("order_changes", "where two of them change places",
                       [](const Told& told) { return told.comparison.changes; }));
};

}  // namespace dculab
