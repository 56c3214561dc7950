#include "cli/search/told_points.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "cli/output/leaning_report.hpp"
#include "cli/output/machine_figures.hpp"
#include "cli/output/progress.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/serving/step_confidence.hpp"
#include "sim/serving/step_sample.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/server.hpp"

namespace dculab::cli {
namespace {

// Some of the steps that serve the requests.
[[nodiscard]] std::vector<Batch> served_steps(const SweepCase& asked, const sim::SimulatedServer& server) {
  sim::StepSample sample(sim::kSampledSteps);
  static_cast<void>(
      sim::simulate(server, asked.requests, {}, [&sample](const ServedStep& step, int) { sample.add(step); }));
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

// The time of the step, or of the steps that serve the requests, by phase.
[[nodiscard]] sim::Prices prices_of(const SweepCase& asked) {
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

}  // namespace

std::vector<KeptPoint> told_points(const SearchSummary& summary) {
  std::vector<KeptPoint> told;
  std::set<std::uint64_t> numbers;
  const auto add = [&](const KeptPoint& point) {
    if (numbers.insert(point.number).second) told.push_back(point);
  };
  const std::vector<KeptPoint>& best = summary.best();
  std::for_each(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(std::min(best.size(), kShownBest)), add);
  for (const BestOfValue& each : summary.best_of_values())
    if (each.best) add(*each.best);
  const std::vector<KeptPoint> front = summary.front();
  std::for_each(front.begin(), front.begin() + static_cast<std::ptrdiff_t>(std::min(front.size(), kShownFront)), add);
  return told;
}

PointTrusts trusts_of(const SweepSpace& space, const std::vector<KeptPoint>& told, int threads) {
  std::vector<PointTrust> found(told.size());
  const std::size_t step_time = space.metric("step_time");
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&, pricer = std::make_shared<PointPricer>(space)](std::uint64_t index) {
      const Seconds seconds(space.is_served() ? 0 : told[index].figures[step_time]);
      found[index] = trust_of(pricer->at(told[index].number), seconds);
      return std::string();
    };
  };
  ProgressBar bar;
  sim::work_in_order({0, told.size()}, threads, make_worker, [&](std::uint64_t index, const std::string&) {
    bar.update("how sure the points are", static_cast<double>(index + 1) / static_cast<double>(told.size()));
  });
  bar.clear();
  PointTrusts trusts;
  for (std::size_t index = 0; index < told.size(); ++index) trusts[told[index].number] = std::move(found[index]);
  return trusts;
}

void add_trust(const SweepSpace& space, const PointTrusts& trusts, std::uint64_t point, Json& json) {
  const auto found = trusts.find(point);
  if (found == trusts.end()) return;
  const PointTrust& trust = found->second;
  json["machine"] = trust.machine;
  json["basis"] = sim::name(trust.basis);
  json[space.is_served() ? "step_time_interval" : "interval_seconds"] = {trust.low, trust.high};
}

void warn_of_refused_kv(const SweepSpace& space, const std::vector<KeptPoint>& told, Report& report) {
  PointPricer pricer(space);
  for (const KeptPoint& point : told) {
    const SweepCase& asked = pricer.at(point.number);
    add_warnings(report, asked.is_served() ? study::refused_kv(asked.server_on(asked.machine))
                                           : study::refused_kv(asked.machine, asked.model, asked.options));
  }
}

void report_machines(const SweepSpace& space, const std::vector<KeptPoint>& told, const PointTrusts& trusts,
                     Report& report) {
  PointPricer pricer(space);
  for (const KeptPoint& point : told) {
    Json& leans_on = report.json["leans_on"][trusts.at(point.number).machine];
    if (!leans_on.is_null()) continue;
    const SweepCase& asked = pricer.at(point.number);
    leans_on = add_leanings(asked.machine, prices_of(asked), report,
                            asked.is_served() ? Priced::served_steps : Priced::answer);
    report.json["machine_facts"][asked.machine.name] = machine_facts(asked.machine, space.axes());
  }
}

}  // namespace dculab::cli
