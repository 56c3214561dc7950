#include "study/decide/doubt.hpp"

#include <algorithm>

#include "study/decide/replica_count.hpp"
#include "study/decide/replica_service.hpp"

namespace dculab::study {
namespace {

// Of pools, and of recorded requests, whose own rate changes: the last of a run end without others beside them.
constexpr double kKeepsUp = 0.95;

[[nodiscard]] sim::SimulatedServer slowed(const DoubtQuestion& question) {
  sim::SimulatedServer server = question.server;
  server.step_scale = question.slowest;
  return server;
}

[[nodiscard]] bool keeps_up(double arriving, double rate) { return arriving <= kMostUtilization * rate; }

[[nodiscard]] bool is_enough(const DoubtQuestion& question, double rate, int replicas) {
  const RequestWorkload part = question.part_of(replicas);
  if (!keeps_up(part.requests_per_second, rate)) return false;
  return !has_limits(question.slo) ||
         sim::simulate(slowed(question), part, question.slo).metrics.share_within_objective() >= question.slo.share;
}

}  // namespace

Doubt doubt_of(const ExpectedService& expected, const ServiceLevel& slo) {
  if (has_limits(slo) && expected.slo_attainment.low < slo.share) return Doubt::service_level;
  const ExpectedFigure& served = expected.requests_per_second;
  const bool serves = expected.slowest_rate ? keeps_up(expected.arriving, *expected.slowest_rate)
                                            : served.low >= kKeepsUp * served.value;
  return serves ? Doubt::none : Doubt::rate;
}

double slowest_rate(const DoubtQuestion& question) {
  return serve_full(slowed(question), question.part_of(1), question.load).requests_per_second;
}

std::optional<int> replicas_without_doubt(const DoubtQuestion& question, double rate, int replicas, int most) {
  int bad = replicas, good = std::min(2 * replicas, most);
  for (; good > bad && !is_enough(question, rate, good); bad = good, good = std::min(2 * good, most)) {
  }
  if (good <= bad) return std::nullopt;
  while (good - bad > 1) {
    const int middle = bad + (good - bad) / 2;
    (is_enough(question, rate, middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace dculab::study
