// The fields of what `dculab predict` answers.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fields/field_list.hpp"
#include "present/study/speculation_fields.hpp"
#include "present/values/expert_report.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "present/values/subject.hpp"
#include "sim/calibration/input_sensitivity.hpp"
#include "study/answer/prediction.hpp"

namespace dculab::present {

// Precondition of both: prediction.cost.energy.
[[nodiscard]] inline Watts mean_power(const study::Prediction& prediction) {
  return *prediction.cost.energy / prediction.cost.devices / prediction.price.seconds;
}
[[nodiscard]] inline Joules energy_per_token(const study::Prediction& prediction) {
  return *prediction.cost.energy / static_cast<double>(prediction.plan.batch.num_tokens());
}

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::TwoMicroBatches> {
  static constexpr std::string_view id = "two_micro_batches";
  static constexpr std::string_view doc = "The step in two micro-batches, each of which hides the other's exchanges.";
  static constexpr auto fields = std::tuple(
      field("step_seconds", "predicted time", &sim::TwoMicroBatches::seconds),
      field("hidden_exchange_seconds", "exchange that runs beside computing", &sim::TwoMicroBatches::hidden));
};

template <>
struct FieldList<study::Prediction> {
  using Prediction = study::Prediction;
  static constexpr std::string_view id = "prediction";
  static constexpr std::string_view doc =
      "One step on one machine, op by op. Of a model that several devices share, times, FLOP and bytes are one "
      "device's.";
  static constexpr std::string_view csv_rows = "ops";
  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Prediction& step) { return step.model.name; }),
      field("subject", "what all figures are about", [](const Prediction& step) { return present::subject_of(step); }),
      field("machine", "its name", [](const Prediction& step) { return step.machine.name; }),
      field("stack", "whose kernels run: the stack's name",
            [](const Prediction& step) { return step.machine.stack.name; }),
      field("tensor_parallel_size", "devices that share the model", unit::count,
            [](const Prediction& step) { return step.model.tensor_parallel_size; }),
      field("stack_figures", "of the stack, all that is no default",
            [](const Prediction& step) { return present::stack_figures(step.machine); }),
      field("step_seconds", "predicted time of the step", [](const Prediction& step) { return step.price.seconds; }),
      field("interval_seconds", "90 %",
            [](const Prediction& step) { return interval(step.confidence.low, step.confidence.high); }),
      field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Prediction& step) { return sim::name(step.confidence.basis); }),
      field("host_seconds", "of the step, between its kernels and steps",
            [](const Prediction& step) { return step.price.host; }),
      field("exchange_seconds", "of the step, for devices to exchange results",
            [](const Prediction& step) { return sim::exchange_time(step.price); }),
      field("mean_watts", "of each device, while it runs such steps; where the machine's power is stated",
            [](const Prediction& step) {
              return when(step.cost.energy.has_value(), [&] { return present::mean_power(step); });
            }),
      field("joules_per_token", "of all devices that share the step, for each token that it computes",
            [](const Prediction& step) {
              return when(step.cost.energy.has_value(), [&] { return present::energy_per_token(step); });
            }),
      field("max_sequences", "of this length, that fit in memory", unit::count,
            [](const Prediction& step) { return step.capacity.max_sequences; }),
      field("warnings", "what makes the figures less than they seem", &Prediction::warnings),
      field("assumed", "keys of the machine's figures that nobody published or measured",
            [](const Prediction& step) { return sim::assumed_keys(step.machine); }),
      field("leans_on", "those that change the step most",
            [](const Prediction& step) {
              return present::reported_sensitivities(step.machine, step.input_sensitivities);
            }),
      field("ops", "in the order in which they run",
            [](const Prediction& step) { return present::priced_ops(step.plan, step.price, step.machine); }),
      field("speculation", "of a step that verifies drafts", &Prediction::drafts),
      field("redesign", "where the scenario sets figures of the machine",
            [](const Prediction& step) { return step.machine.redesign; }),
      field("two_micro_batches", "where devices share experts and the step has tokens for two",
            &Prediction::micro_batches),
      field("compute_bound_experts", "from where on the products of experts are bound by arithmetic; null: nowhere",
            [](const Prediction& step) {
              return when(step.model.has_experts(),
                          [&] { return or_null(sim::compute_bound_batch(step.machine, step.model, step.options)); });
            }),
      field("machine_facts", "by the machine's name", [](const Prediction& step) {
        return std::vector{std::pair(step.machine.name, present::machine_facts(step.machine))};
      }));
};

}  // namespace dculab
