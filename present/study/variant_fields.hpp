// The fields of what a variant costs, and of published figures beside it.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "config/weight_format_text.hpp"
#include "present/output/field_json.hpp"
#include "present/study/metric_text.hpp"
#include "present/study/service_tables.hpp"
#include "present/study/variant_text.hpp"
#include "study/validate/reported_figures.hpp"

namespace dculab::present {

// A variant that fits in memory.
struct FittingVariant {
  const study::VariantCost& cost;

  // Of the time, by what takes it.
  [[nodiscard]] std::vector<std::pair<std::string, double>> shares() const {
    std::vector<std::pair<std::string, double>> shares;
    const Seconds total = cost.shared_time();
    for (const auto& [cause, time] : cost.shares) shares.emplace_back(cause, time / total);
    return shares;
  }
};

// A published figure that stands alone, or that is a change against the baseline.
struct ScoredFigure {
  const study::ReportedScore& score;
};
struct ScoredChange {
  const study::ReportedScore& score;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::ServicePool> {
  using Pool = sim::ServicePool;
  static constexpr std::string_view id = "service_pool";
  static constexpr std::string_view doc = "A pool of a service: prefill or decode.";
  static constexpr auto fields =
      std::tuple(field("batch", "sequences of a group of devices with sequences of its own", unit::count, &Pool::batch),
                 field("tokens", "of its step", unit::tokens, &Pool::tokens),
                 field("tokens_per_second_per_node", "that the pool takes in or gives out", unit::tokens_per_second,
                       &Pool::tokens_per_second),
                 field("step_seconds", "sum of the terms", &Pool::steps),
                 field("kv_reading_seconds", "from the KV store, beside the step", &Pool::reading),
                 field("kv_sending_seconds", "to the other pool, beside the step", &Pool::sending),
                 field("terms", "what the step spends its time on", &Pool::terms));
};

template <>
struct FieldList<sim::ServiceRun> {
  static constexpr std::string_view id = "service_pools";
  static constexpr std::string_view doc = "The pools of a service.";
  static constexpr auto fields = std::tuple(field("prefill", "its pool for prompts", &sim::ServiceRun::prefill),
                                            field("decode", "its pool for answers", &sim::ServiceRun::decode));
};

template <>
struct FieldList<present::FittingVariant> {
  using Self = present::FittingVariant;
  static constexpr std::string_view id = "fitting_variant";
  static constexpr std::string_view doc = "What a variant that fits in memory comes to.";
  static constexpr auto fields =
      std::tuple(keyed(present::metric_keys, [](const Self& reported) { return reported.cost.figures; }),
                 field("pools", "of a service with pools", [](const Self& reported) { return reported.cost.service; }),
                 field("bound", "the largest share of the time",
                       [](const Self& reported) { return present::largest_share(reported.cost); }),
                 field("attention_share", "of the time, that attention takes", unit::share,
                       [](const Self& reported) { return study::attention_share(reported.cost); }),
                 field("shares", "of the time, by what takes it", unit::share, &Self::shares));
};

template <>
struct FieldList<study::VariantCost> {
  using Cost = study::VariantCost;
  static constexpr std::string_view id = "variant_cost";
  static constexpr std::string_view doc = "A variant on a machine. One that does not fit in memory has no figures.";
  static constexpr auto fields = std::tuple(
      field("stack", "whose kernels run", [](const Cost& cost) { return cost.machine.stack.name; }),
      field("model", "its name", [](const Cost& cost) { return cost.model.name; }),
      field("num_key_value_heads", "of a layer", unit::count,
            [](const Cost& cost) { return cost.model.heads().num_key_value_heads; }),
      field("weights", "their format",
            [](const Cost& cost) { return config::weight_format_text(cost.options.weights); }),
      field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
            [](const Cost& cost) { return name(cost.options.kv_cache_dtype); }),
      field("batch", "sequences at a time; 0: none fits", unit::count, &Cost::batch),
      field("batch_limit", "of served requests, what keeps the batch from being larger",
            names_up_to<sim::BatchLimit::memory>(),
            [](const Cost& cost) { return when(!cost.batch_limit.empty(), [&] { return cost.batch_limit; }); }),
      inlined([](const Cost& cost) { return when(cost.fits(), [&] { return present::FittingVariant{cost}; }); }));
};

template <>
struct FieldList<present::ScoredFigure> {
  using Self = present::ScoredFigure;
  static constexpr std::string_view id = "scored_figure";
  static constexpr std::string_view doc = "A published figure that stands alone, in s, 1/s or a number.";
  static constexpr auto fields = std::tuple(
      field("variant", "whose it is", [](const Self& reported) { return reported.score.figure->variant; }),
      field("metric", "what it is of", [](const Self& reported) { return reported.score.figure->metric; }),
      field("predicted_value", "ours", [](const Self& reported) { return reported.score.predicted; }),
      field("value_interval", "of ours, 90 %",
            [](const Self& reported) {
              return interval(reported.score.of_baseline.low, reported.score.of_baseline.high);
            }),
      field("reported_value", "as published", [](const Self& reported) { return *reported.score.figure->value; }),
      field("bound", "what limits most of the time", [](const Self& reported) {
        return present::bound_of(*reported.score.variant, reported.score.figure->metric);
      }));
};

template <>
struct FieldList<present::ScoredChange> {
  using Self = present::ScoredChange;
  static constexpr std::string_view id = "scored_change";
  static constexpr std::string_view doc = "A published change against the baseline. Values are in s, 1/s or a number.";

  [[nodiscard]] static std::optional<Interval<double>> of_change(const Self& reported) {
    const auto& ends = reported.score.of_change;
    return when(ends.has_value(), [&] { return interval(ends->low, ends->high); });
  }

  static constexpr auto fields = std::tuple(
      field("variant", "whose it is", [](const Self& reported) { return reported.score.figure->variant; }),
      field("metric", "what it is of", [](const Self& reported) { return reported.score.figure->metric; }),
      field("predicted_change", "ours", unit::share, [](const Self& reported) { return reported.score.predicted; }),
      field("reported_change", "as published", unit::share,
            [](const Self& reported) { return reported.score.figure->change; }),
      field("difference", "predicted minus reported", unit::share,
            [](const Self& reported) { return reported.score.predicted - reported.score.figure->change; }),
      field("bound", "what limits most of the baseline's time",
            [](const Self& reported) { return present::largest_share(reported.score.baseline()); }),
      field("baseline_interval", "of the baseline's value as we predict it, 90 %",
            [](const Self& reported) {
              return interval(reported.score.of_baseline.low, reported.score.of_baseline.high);
            }),
      field("change_interval", "of ours, 90 %", unit::share, &of_change),
      field("reported_baseline", "the baseline's value as published",
            [](const Self& reported) { return reported.score.figure->baseline; }),
      field("reported_value", "the variant's value as published",
            [](const Self& reported) { return reported.score.figure->value; }));
};

}  // namespace dculab
