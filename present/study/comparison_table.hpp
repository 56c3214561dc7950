// What was served here, alone and beside its simulation, as tables and as fields of JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/generate/serve.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

// A metric's value with its unit: "12.3 ms", "51.2".
[[nodiscard]] std::string figure_cell(const std::string& metric, double value);

// Several replicas in rows: what each did, and what it handed over.
[[nodiscard]] Table served_replica_table(const engine::ServedWorkload& served);
struct ToldReplica {
  const engine::ServedReplica& replica;
  Seconds duration;  // of the run
};
[[nodiscard]] std::vector<ToldReplica> served_replicas(const engine::ServedWorkload& served);

// Metric by metric: simulated, measured, and how far the first is from the second.
[[nodiscard]] Table comparison_table(const std::map<std::string, double>& simulated,
                                     const std::map<std::string, double>& measured);
struct ComparedFigure {
  double simulated = 0, measured = 0;
};
[[nodiscard]] std::vector<std::pair<std::string, ComparedFigure>> compared_figures(
    const std::map<std::string, double>& simulated, const std::map<std::string, double>& measured);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ToldReplica> {
  using Told = present::ToldReplica;
  static constexpr std::string_view id = "served_replica";
  static constexpr std::string_view doc = "A replica that served requests here.";
  static constexpr auto fields = std::tuple(
      field("role", "in the end", names_up_to<ReplicaRole::decode>(),
            [](const Told& told) { return name(told.replica.role); }),
      field("role_switches", "changes of the role", unit::count,
            [](const Told& told) { return told.replica.role_switches; }),
      field("requests", "that ended there", unit::count, [](const Told& told) { return told.replica.requests; }),
      field("steps", "of its model", unit::count, [](const Told& told) { return told.replica.num_steps; }),
      field("preemptions", "of running requests", unit::count,
            [](const Told& told) { return told.replica.num_preemptions; }),
      field("utilization", "of the run's time, in steps", unit::share,
            [](const Told& told) { return told.replica.busy / told.duration; }),
      field("prompts_handed_over", "to another replica", unit::count,
            [](const Told& told) { return told.replica.handed_over; }),
      field("bytes_handed_over", "of K and V", [](const Told& told) { return told.replica.handed_over_bytes; }),
      field("sending_seconds", "to copy them out of its KV cache",
            [](const Told& told) { return told.replica.sending; }),
      field("receiving_seconds", "to copy others into its KV cache",
            [](const Told& told) { return told.replica.receiving; }));
};

template <>
struct FieldList<present::ComparedFigure> {
  static constexpr std::string_view id = "compared_figure";
  static constexpr std::string_view doc = "A figure of served requests: a time in s, a rate in 1/s or a number.";
  static constexpr auto fields =
      std::tuple(field("simulated", "under the virtual clock", &present::ComparedFigure::simulated),
                 field("measured", "on this machine", &present::ComparedFigure::measured));
};

}  // namespace dculab
