#include "study/decide/doubt.hpp"

#include <algorithm>

#include "study/decide/replica_service.hpp"

namespace dculab::study {
namespace {

constexpr double kKeepsUp = 0.95;  // of the rate; the last requests of a run end without others beside them

[[nodiscard]] ServingMetrics served(const DoubtQuestion& question, int replicas, double scale) {
  sim::SimulatedServer server = question.server;
  server.step_scale = scale;
  return sim::simulate(server, question.part_of(replicas), question.slo).metrics;
}

[[nodiscard]] bool is_enough(const DoubtQuestion& question, int replicas) {
  const ServingMetrics slow = served(question, replicas, question.slowest);
  if (has_limits(question.slo) && slow.share_within_objective() < question.slo.share) return false;
  return kKeepsUp * slow.duration() <= served(question, replicas, question.server.step_scale).duration();
}

}  // namespace

Doubt doubt_of(const ExpectedService& expected, const ServiceLevel& slo) {
  if (has_limits(slo) && expected.slo_attainment.low < slo.share) return Doubt::service_level;
  const ExpectedFigure& rate = expected.requests_per_second;
  return rate.low < kKeepsUp * rate.value ? Doubt::rate : Doubt::none;
}

std::optional<int> replicas_without_doubt(const DoubtQuestion& question, int replicas, int most) {
  int bad = replicas, good = std::min(2 * replicas, most);
  for (; good > bad && !is_enough(question, good); bad = good, good = std::min(2 * good, most)) {
  }
  if (good <= bad) return std::nullopt;
  while (good - bad > 1) {
    const int middle = bad + (good - bad) / 2;
    (is_enough(question, middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace dculab::study
