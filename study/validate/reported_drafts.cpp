#include "study/validate/reported_drafts.hpp"

#include <algorithm>
#include <utility>

#include "sim/serving/simulated_server.hpp"
#include "sim/speculation/acceptance.hpp"
#include "study/decide/draft_study.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/server.hpp"

namespace dculab::study {
namespace {

// TPOT of the requests without drafts over that with them.
[[nodiscard]] std::optional<double> simulated_speed_up(const config::Scenario& scenario, const std::string& machine) {
  if (scenario.workload.kind != config::WorkloadKind::serving) return std::nullopt;
  sim::SimulatedServer server = resolve_server(scenario, resolve_machine(scenario, machine));
  const RequestWorkload workload = resolve_requests(scenario, server.model);
  const Seconds with = sim::simulate(server, workload).metrics.tpot().mean();
  server.options.speculative_config = {};
  server.speculation.reset();
  return sim::simulate(server, workload).metrics.tpot().mean() / with;
}

[[nodiscard]] std::optional<double> reported_speed_up(const config::Compare& compare, const std::string& variant) {
  std::optional<double> reported;
  for (const config::ReportedFigure& figure : compare.reported)
    if (figure.variant == variant && figure.metric == "speed_up") reported = figure.value;
  return reported;
}

[[nodiscard]] ReportedDraft reported_draft(const config::Scenario& scenario, const config::Variant& variant,
                                           const std::string& machine) {
  const config::SweepPoint changed{{}, config::with_changes(scenario, variant)};
  const DraftPoint point = draft_point(changed, resolve_machine(changed.scenario, machine));
  ReportedDraft draft{.variant = variant.name,
                      .outcome = judge(point.question, point.shape(), point.batch),
                      .simulated = simulated_speed_up(changed.scenario, machine),
                      .reported = reported_speed_up(*scenario.compare, variant.name)};
  const int depth = point.shape().depth();
  draft.rate = sim::rate_of_chain(std::min(draft.outcome.tokens, depth + 1.0), depth);
  draft.cost = draft.outcome.times.drafting / draft.outcome.times.plain / depth;
  draft.closed_form = sim::lecture_speed_up(draft.rate, depth, draft.cost);
  return draft;
}

}  // namespace

std::vector<ReportedDraft> reported_drafts(const config::Scenario& scenario, const std::string& machine) {
  std::vector<ReportedDraft> drafts;
  for (const config::Variant& variant : scenario.compare->variants)
    drafts.push_back(reported_draft(scenario, variant, machine));
  return drafts;
}

std::vector<ReportedDrafts> reported_drafts(const config::Scenario& scenario,
                                            const std::vector<std::string>& machines) {
  refuse_drafted_prefill(scenario);
  std::vector<ReportedDrafts> reported;
  for (const std::string& machine : machines) {
    std::vector<ReportedDraft> drafts = reported_drafts(scenario, machine);
    reported.push_back({resolve_machine(scenario, machine).name, std::move(drafts)});
  }
  return reported;
}

}  // namespace dculab::study
