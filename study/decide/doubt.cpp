#include "study/decide/doubt.hpp"

#include <algorithm>
#include <string>

#include "sim/study/ordered_chunks.hpp"
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

[[nodiscard]] bool is_enough(const DoubtQuestion& question, double rate, int replicas, Sample sample) {
  const RequestWorkload part = question.part_of(replicas, sample);
  if (!keeps_up(part.requests_per_second, rate)) return false;
  return !has_limits(question.slo) ||
         sim::simulate(slowed(question), part, question.slo).metrics.share_within_objective() >= question.slo.share;
}

// By few requests, `most` where they say that none are.
[[nodiscard]] int about_enough(const DoubtQuestion& question, double rate, int replicas, int most) {
  int bad = replicas, good = std::min(2 * replicas, most);
  for (; good < most && !is_enough(question, rate, good, Sample::few); bad = good, good = std::min(2 * good, most)) {
  }
  while (good - bad > 1) {
    const int middle = bad + (good - bad) / 2;
    (is_enough(question, rate, middle, Sample::few) ? good : bad) = middle;
  }
  return good;
}

// By many requests: whether so many replicas are, and whether one less are.
struct Enough {
  bool all = false, one_less = false;
};
[[nodiscard]] Enough are_enough(const DoubtQuestion& question, double rate, int replicas) {
  Enough found;
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t less) {
      const bool enough = is_enough(question, rate, replicas - static_cast<int>(less), Sample::many);
      (less == 0 ? found.all : found.one_less) = enough;
      return std::string();
    };
  };
  constexpr int kBothAtOnce = 2;
  sim::work_in_order({0, 2}, kBothAtOnce, make_worker, [](std::uint64_t, const std::string&) {});
  return found;
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
  return serve_full(slowed(question), question.part_of(1, Sample::few), question.load).requests_per_second;
}

std::optional<int> replicas_without_doubt(const DoubtQuestion& question, double rate, int replicas, int most) {
  if (most <= replicas) return std::nullopt;
  int enough = about_enough(question, rate, replicas, most);
  Enough found = are_enough(question, rate, enough);
  while (!found.all) {
    if (enough == most) return std::nullopt;
    found = {is_enough(question, rate, ++enough, Sample::many), false};
  }
  while (found.one_less && enough - 1 > replicas) {
    --enough;
    found.one_less = is_enough(question, rate, enough - 1, Sample::many);
  }
  return enough;
}

}  // namespace dculab::study
