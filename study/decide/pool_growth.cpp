#include "study/decide/pool_growth.hpp"

#include <algorithm>

namespace dculab::study {
namespace {

constexpr double kLeastGain = 0.01;  // of a time, by which more replicas help

[[nodiscard]] int with_more(int replicas) { return replicas + std::max(1, replicas / 8); }

}  // namespace

std::optional<PoolReplicas> PoolGrowth::next(PoolReplicas replicas, const PoolsService& served,
                                             const ServiceLevel& slo) {
  const double ttft = slo.ttft ? served.service.ttft / *slo.ttft : 0, tpot = slo.tpot ? served.tpot / *slo.tpot : 0;
  if (tpot > 1 || (ttft <= 1 && tpot >= ttft)) {
    if (!add_for_tpot(served.tpot, replicas)) return std::nullopt;
  } else {
    grown_.reset();
  }
  if (ttft > 1 || (tpot <= 1 && ttft > tpot)) replicas.prefill = with_more(replicas.prefill);
  return replicas;
}

bool PoolGrowth::add_for_tpot(Seconds tpot, PoolReplicas& replicas) {
  const bool helped = !grown_ || tpot < tpot_ * (1 - kLeastGain);
  if (!helped && grown_ == ReplicaRole::prefill) return false;
  tpot_ = tpot;
  if (!helped) grown_ = ReplicaRole::prefill;
  if (!grown_) grown_ = ReplicaRole::decode;
  int& grows = grown_ == ReplicaRole::decode ? replicas.decode : replicas.prefill;
  grows = with_more(grows);
  return true;
}

}  // namespace dculab::study
