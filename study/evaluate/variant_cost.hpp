// What a scenario without a sweep costs on a machine: one step, a run of requests, or a service with pools for prefill
// and decode.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"
#include "sim/study/service_run.hpp"

namespace dculab::study {

struct VariantCost {
  sim::Machine machine;  // with its stack
  ModelShape model;
  EngineOptions options;
  int batch = 0;            // sequences at a time; 0: none fits
  bool has_room = true;     // of a step: whether memory has room for its sequences; it is priced all the same
  std::string batch_limit;  // of a run: "requests", "max_num_seqs" or "memory"
  sim::MeasuredRun measured_run;
  std::map<std::string, double> figures;     // by metric: "step_time", or "total_time", "requests_per_second", ...
  std::map<std::string, Seconds> shares;     // sim::run_shares; of a service the terms of a decode step
  std::optional<sim::ServiceRun> service{};  // of pools: measured_run and batch are its decode's
  std::vector<std::string> refused{};        // refused_kv() of its devices

  [[nodiscard]] bool fits() const { return batch > 0; }
  [[nodiscard]] Seconds shared_time() const;  // the sum of `shares`
};

// Whether `machine`, with its stack, is what the variant runs on.
[[nodiscard]] bool is_run_by(const VariantCost& cost, const sim::Machine& machine);

// Throws InputError when a context is longer than the model's.
[[nodiscard]] VariantCost cost_of(const config::Scenario& scenario, const sim::Machine& machine);

// variant / baseline - 1. Precondition of all below: what is asked about fits, and has the metric.
[[nodiscard]] double change_of(const std::string& metric, const VariantCost& variant, const VariantCost& baseline);

struct FigureInterval {
  double low = 0;
  double high = 0;
};

// At 90 %, of a figure and of change_of(); nothing where sim::ratio_factor says nothing.
[[nodiscard]] FigureInterval interval_of(const VariantCost& cost, const std::string& metric);
[[nodiscard]] std::optional<FigureInterval> interval_of_change(const VariantCost& baseline, const VariantCost& variant,
                                                               const std::string& metric);

// Share of the time that attention takes, whatever limits it.
[[nodiscard]] double attention_share(const VariantCost& cost);

// The metric by which variants are held against each other: of a run its output tokens, of a step its time.
[[nodiscard]] std::string main_metric(const config::Scenario& scenario);

}  // namespace dculab::study
