#include "present/measure/served_replicas.hpp"

#include <string>

#include "config/unit_text.hpp"

namespace dculab::present {

Table served_replica_table(const engine::ServedWorkload& served) {
  Table table;
  table.title = "Replicas";
  table.columns = {"replica", "requests", "steps", "busy", "preemptions", "handed over", "copied out", "copied in"};
  int number = 0;
  for (const engine::ServedReplica& replica : served.replicas) {
    const double busy = replica.busy / served.metrics.duration();
    std::string title = std::to_string(++number);
    if (replica.role != ReplicaRole::both) title += " " + std::string(name(replica.role));
    table.rows.push_back({title, std::to_string(replica.requests), std::to_string(replica.num_steps), percent(busy),
                          std::to_string(replica.num_preemptions), config::short_text(replica.handed_over_bytes),
                          config::short_text(replica.sending), config::short_text(replica.receiving)});
  }
  return table;
}

std::vector<ReportedReplica> served_replicas(const engine::ServedWorkload& served) {
  std::vector<ReportedReplica> replicas;
  for (const engine::ServedReplica& replica : served.replicas) replicas.push_back({replica, served.metrics.duration()});
  return replicas;
}

}  // namespace dculab::present
