// Which pool of a disaggregated server gets replicas where the requests miss the service level.
//
//   TTFT    the prefill pool
//   TPOT    the decode pool; where more replicas of it do not make TPOT 1 % smaller, KV waits for busy links: the
//           prefill pool, whose replicas have a link each
//   neither alone, but too few requests meet both: the pool of the time that is nearer to its limit
#pragma once

#include <optional>

#include "core/replica_roles.hpp"
#include "study/decide/pool_service.hpp"

namespace dculab::study {

struct PoolReplicas {
  int prefill = 1, decode = 1;
};

class PoolGrowth {
 public:
  // The replicas to try next, at least one more and an eighth. Nothing where more of neither pool help. Precondition:
  // `served`, with `replicas`, misses `slo`, which has limits.
  [[nodiscard]] std::optional<PoolReplicas> next(PoolReplicas replicas, const PoolsService& served,
                                                 const ServiceLevel& slo);

 private:
  [[nodiscard]] bool add_for_tpot(Seconds tpot, PoolReplicas& replicas);

  Seconds tpot_{};                      // with the replicas before
  std::optional<ReplicaRole> grown_{};  // the pool that got them for TPOT
};

}  // namespace dculab::study
