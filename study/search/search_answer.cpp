#include "study/search/search_answer.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "sim/cost/step_price.hpp"
#include "sim/serving/step_confidence.hpp"
#include "sim/serving/step_sample.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/server.hpp"

namespace dculab::study {
namespace {

// Some of the steps that serve the requests.
[[nodiscard]] std::vector<Batch> served_steps(const SweepCase& asked, const sim::SimulatedServer& server) {
  sim::StepSample sample(sim::kSampledSteps);
  static_cast<void>(sim::simulate(server, asked.requests, {},
                                  {.on_step = [&sample](const ServedStep& step, int) { sample.add(step); }}));
  return sample.batches();
}

[[nodiscard]] PointTrust trust_of(const SweepCase& asked, Seconds step_time) {
  if (!asked.is_served()) {
    const sim::Confidence trust = sim::confidence(asked.machine, asked.model, asked.options, asked.plan, step_time);
    return {asked.machine.name, trust.low.value(), trust.high.value(), trust.basis};
  }
  const sim::SimulatedServer server = asked.server_on(asked.machine);
  const sim::StepConfidence trust = sim::step_confidence(server, served_steps(asked, server));
  return {asked.machine.name, trust.low, trust.high, trust.basis};
}

[[nodiscard]] std::vector<std::string> refused_of(const SweepSpace& space, const std::vector<KeptPoint>& reported) {
  PointPricer pricer(space);
  std::vector<std::string> refused;
  for (const KeptPoint& point : reported) {
    const SweepCase& asked = pricer.at(point.number);
    std::ranges::move(asked.is_served() ? refused_kv(asked.server_on(asked.machine))
                                        : refused_kv(asked.machine, asked.model, asked.options),
                      std::back_inserter(refused));
  }
  return refused;
}

}  // namespace

std::vector<KeptPoint> reported_points(const SearchSummary& summary) {
  std::vector<KeptPoint> reported;
  std::set<std::uint64_t> numbers;
  const auto add = [&](const KeptPoint& point) {
    if (numbers.insert(point.number).second) reported.push_back(point);
  };
  const std::vector<KeptPoint>& best = summary.best();
  std::for_each(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(std::min(best.size(), kShownBest)), add);
  for (const BestOfValue& each : summary.best_of_values())
    if (each.best) add(*each.best);
  const std::vector<KeptPoint> front = summary.front();
  std::for_each(front.begin(), front.begin() + static_cast<std::ptrdiff_t>(std::min(front.size(), kShownFront)), add);
  return reported;
}

PointTrusts trusts_of(const SweepSpace& space, const std::vector<KeptPoint>& reported, int threads,
                      const SearchProgress& progress) {
  std::vector<PointTrust> found(reported.size());
  const std::size_t step_time = space.metric("step_time");
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&, pricer = std::make_shared<PointPricer>(space)](std::uint64_t index) {
      const Seconds seconds(space.is_served() ? 0 : reported[index].figures[step_time]);
      found[index] = trust_of(pricer->at(reported[index].number), seconds);
      return std::string();
    };
  };
  sim::work_in_order({0, reported.size()}, threads, make_worker, [&](std::uint64_t index, const std::string&) {
    if (progress)
      progress("how sure the points are", static_cast<double>(index + 1) / static_cast<double>(reported.size()));
  });
  PointTrusts trusts;
  for (std::size_t index = 0; index < reported.size(); ++index)
    trusts[reported[index].number] = std::move(found[index]);
  return trusts;
}

SearchAnswer answer_search(const SweepSpace& space, const SearchSummary& summary, const AnswerOptions& options,
                           const SearchProgress& progress) {
  SearchAnswer answer{.reported = reported_points(summary), .trusts = {}, .refused = {}, .block_sizes = {}};
  answer.refused = refused_of(space, answer.reported);
  answer.trusts = trusts_of(space, answer.reported, options.threads, progress);
  answer.block_sizes = served_block_sizes(space, summary, options.threads);
  if (options.sensitivity_within && !summary.best().empty())
    answer.sensitivity = search_sensitivity(space, summary, *options.sensitivity_within, options.threads, progress);
  return answer;
}

sim::Prices prices_of(const SweepCase& asked) {
  if (!asked.is_served())
    return [plan = asked.plan](const sim::Machine& machine) {
      return std::vector{sim::price_step(machine, plan).seconds};
    };
  sim::SimulatedServer server = asked.server_on(asked.machine);
  std::vector<Batch> steps = sim::thinned(served_steps(asked, server), sim::kPricedSteps);
  return [server = std::move(server), steps = std::move(steps)](const sim::Machine& machine) mutable {
    server.machine = machine;
    return sim::phase_times(server, steps);
  };
}

}  // namespace dculab::study
