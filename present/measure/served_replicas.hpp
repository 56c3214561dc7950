// Replicas that served requests here, as a table and as fields of JSON.
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "engine/generate/serve.hpp"
#include "fields/field_list.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// Several replicas in rows: what each did, and what it handed over.
[[nodiscard]] Table served_replica_table(const engine::ServedWorkload& served);
struct ReportedReplica {
  const engine::ServedReplica& replica;
  Seconds duration;  // of the run
};
[[nodiscard]] std::vector<ReportedReplica> served_replicas(const engine::ServedWorkload& served);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedReplica> {
  using Self = present::ReportedReplica;
  static constexpr std::string_view id = "served_replica";
  static constexpr std::string_view doc = "A replica that served requests here.";
  static constexpr auto fields = std::tuple(
      field("role", "in the end", names_up_to<ReplicaRole::decode>(),
            [](const Self& reported) { return name(reported.replica.role); }),
      field("role_switches", "changes of the role", unit::count,
            [](const Self& reported) { return reported.replica.role_switches; }),
      field("requests", "that ended there", unit::count,
            [](const Self& reported) { return reported.replica.requests; }),
      field("steps", "of its model", unit::count, [](const Self& reported) { return reported.replica.num_steps; }),
      field("preemptions", "of running requests", unit::count,
            [](const Self& reported) { return reported.replica.num_preemptions; }),
      field("utilization", "of the run's time, in steps", unit::share,
            [](const Self& reported) { return reported.replica.busy / reported.duration; }),
      field("prompts_handed_over", "to another replica", unit::count,
            [](const Self& reported) { return reported.replica.handed_over; }),
      field("bytes_handed_over", "of K and V", [](const Self& reported) { return reported.replica.handed_over_bytes; }),
      field("sending_seconds", "to copy them out of its KV cache",
            [](const Self& reported) { return reported.replica.sending; }),
      field("receiving_seconds", "to copy others into its KV cache",
            [](const Self& reported) { return reported.replica.receiving; }));
};

}  // namespace dculab
