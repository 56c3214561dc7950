// The fields of a simulation of served requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/output/field_json.hpp"
#include "present/study/comparison_table.hpp"
#include "present/study/metric_text.hpp"
#include "present/study/simulation_report.hpp"
#include "study/evaluate/serving_figures.hpp"
#include "study/evaluate/simulation.hpp"

namespace dculab::present {

struct SimulatedReplica {
  const sim::ReplicaRun& replica;
  Seconds duration;  // of the run
};

// Of a run with preemptions by swap.
struct SimulatedSwaps {
  const sim::ServingRun& run;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::SimulatedReplica> {
  using Self = present::SimulatedReplica;
  static constexpr std::string_view id = "simulated_replica";
  static constexpr std::string_view doc = "A replica of a simulated service.";
  static constexpr auto fields = std::tuple(
      field("role", "in the end", names_up_to<ReplicaRole::decode>(),
            [](const Self& reported) { return name(reported.replica.role); }),
      field("requests", "that ended there", unit::count,
            [](const Self& reported) { return reported.replica.requests; }),
      field("steps", "of its model", unit::count, [](const Self& reported) { return reported.replica.num_steps; }),
      field("preemptions", "of running requests", unit::count,
            [](const Self& reported) { return reported.replica.num_preemptions; }),
      field("utilization", "of the run's time, in steps; mean of its devices", unit::share,
            [](const Self& reported) { return reported.replica.busy / reported.duration; }),
      field("role_switches", "changes of the role, where there were any", unit::count, [](const Self& reported) {
        return when(reported.replica.role_switches > 0, [&] { return reported.replica.role_switches; });
      }));
};

template <>
struct FieldList<present::SimulatedSwaps> {
  using Self = present::SimulatedSwaps;
  static constexpr std::string_view id = "swaps";
  static constexpr std::string_view doc = "KV blocks that went to the host's memory and back.";
  static constexpr auto fields =
      std::tuple(field("preemptions", "by swap; the others were recomputed", unit::count,
                       [](const Self& reported) { return reported.run.swaps.preemptions; }),
                 field("bytes_out", "of all devices", [](const Self& reported) { return reported.run.swapped_out; }),
                 field("bytes_in", "of all devices", [](const Self& reported) { return reported.run.swapped_in; }),
                 field("seconds", "that steps waited",
                       [](const Self& reported) { return reported.run.time_by_bound.at("swap"); }));
};

template <>
struct FieldList<study::Simulation> {
  using Simulation = study::Simulation;
  static constexpr std::string_view id = "simulation";
  static constexpr std::string_view doc = "Requests served under a virtual clock.";

  // A count that is reported only where it is not 0.
  [[nodiscard]] static std::optional<std::int64_t> some(std::int64_t count) {
    return when(count > 0, [count] { return count; });
  }
  [[nodiscard]] static std::vector<DataKey> figure_keys() {
    std::vector<DataKey> keys = present::metric_keys();
    keys.push_back({"output_tokens", std::string(unit::tokens), "of answers"});
    keys.push_back({"steps", std::string(unit::count), "of the model"});
    keys.push_back({study::kFewHeadsRequests, std::string(unit::count), "that the smaller set of KV heads served"});
    return keys;
  }
  [[nodiscard]] static std::optional<std::vector<present::SimulatedReplica>> replicas(const Simulation& each) {
    if (each.run.replicas.size() <= 1) return std::nullopt;
    std::vector<present::SimulatedReplica> replicas;
    for (const sim::ReplicaRun& replica : each.run.replicas) replicas.push_back({replica, each.run.metrics.duration()});
    return replicas;
  }
  [[nodiscard]] static std::optional<std::vector<std::pair<std::string, Interval<double>>>> intervals(
      const Simulation& each) {
    std::vector<std::pair<std::string, Interval<double>>> reported;
    for (const auto& [metric, range] : each.intervals) reported.emplace_back(metric, interval(range.low, range.high));
    return when(!reported.empty(), [&] { return reported; });
  }

  static constexpr auto fields = std::tuple(
      field("machine", "its name", &Simulation::machine),
      field("decode_machine", "where decode replicas are of another kind",
            [](const Simulation& each) {
              return when(each.server.decode_machine.has_value(), [&] { return each.server.decode_machine->name; });
            }),
      field("choices", "keys of the scenario and their values", &Simulation::choices),
      field("requests", "that were served", unit::count,
            [](const Simulation& each) { return each.run.metrics.requests(); }),
      field("one_in", "groups of devices that share experts, and of requests, of which one is simulated", unit::count,
            [](const Simulation& each) { return when(each.run.one_in > 1, [&] { return each.run.one_in; }); }),
      field("slo", "that they are held to", &Simulation::slo),
      field("requests_within_slo", "of these", unit::count,
            [](const Simulation& each) { return each.run.metrics.requests_within_objective(); }),
      field("prompt_tokens", "of all requests", unit::tokens,
            [](const Simulation& each) { return each.run.metrics.prompt_tokens(); }),
      field("cached_prompt_tokens", "of these, found by prefix caching or read from the KV store", unit::tokens,
            [](const Simulation& each) { return each.run.metrics.cached_tokens(); }),
      field("stored_prompt_tokens", "of these, read from the KV store", unit::tokens,
            [](const Simulation& each) { return some(each.run.metrics.stored_tokens()); }),
      field("skipped_padding_tokens", "of padding, whose K and V were not written", unit::tokens,
            [](const Simulation& each) { return some(each.run.metrics.padding_tokens()); }),
      field("skipped_duplicate_tokens", "of prompts that another request had, whose K and V were not written",
            unit::tokens, [](const Simulation& each) { return some(each.run.metrics.duplicate_tokens()); }),
      field("output_tokens", "of answers", unit::tokens,
            [](const Simulation& each) { return each.run.metrics.output_tokens(); }),
      keyed(&figure_keys, &Simulation::figures),
      field("steps", "of the model", unit::count, [](const Simulation& each) { return each.run.num_steps; }),
      field("busy_seconds", "sum of the steps, with drafting", [](const Simulation& each) { return each.run.busy; }),
      field("preemptions", "of running requests", unit::count,
            [](const Simulation& each) { return each.run.num_preemptions; }),
      field("speculation", "where something was drafted",
            [](const Simulation& each) {
              return when(each.run.drafts.num_drafts > 0, [&] { return present::drafts_of(each.run); });
            }),
      field("groups_by_load", "of a server with two sets of KV heads",
            [](const Simulation& each) {
              return when(each.server.few_heads.has_value(), [&] { return present::head_sets_of(each); });
            }),
      field("swaps", "where there were any",
            [](const Simulation& each) {
              return when(each.run.swaps.preemptions > 0, [&] { return present::SimulatedSwaps{each.run}; });
            }),
      field("replicas", "where there are several", &replicas),
      field("num_blocks", "KV blocks of all engines", unit::count,
            [](const Simulation& each) { return each.run.num_blocks; }),
      field("most_used_blocks", "of these, at one time", unit::count,
            [](const Simulation& each) { return each.run.timeline.most_used_blocks(); }),
      field("seconds_by_bound", "of busy_seconds, by what limits the time",
            [](const Simulation& each) {
              return when(!each.run.time_by_bound.empty(), [&] { return each.run.time_by_bound; });
            }),
      field("basis", "what step_time_interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Simulation& each) { return sim::name(each.trust.basis); }),
      field("step_time_interval", "of the steps' times over their predictions, 90 %", unit::ratio,
            [](const Simulation& each) { return interval(each.trust.low, each.trust.high); }),
      field("intervals", "of figures by name, 90 %: all steps at either end of step_time_interval", &intervals),
      field("measured", "figures that were measured here, by name",
            [](const Simulation& each) {
              return when(!each.measured.empty(),
                          [&] { return present::compared_figures(each.figures, each.measured); });
            }),
      field("timeline", "parts of the run, in order",
            [](const Simulation& each) { return each.run.timeline.intervals(); }));
};

}  // namespace dculab
