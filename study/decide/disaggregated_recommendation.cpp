#include "study/decide/disaggregated_recommendation.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "study/decide/offered_fleet.hpp"
#include "study/decide/serving_case.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

constexpr const char* kDecodeMachine = "--decode-machine";

void require_answerable(const RecommendationQuestion& question) {
  const auto refuse = [](bool found, const char* what) {
    if (found) throw InputError(kDecodeMachine, what);
  };
  refuse(!question.offer, "layouts and replicas of both pools are chosen; add --devices N, the devices of a server");
  refuse(question.any_kv_heads || question.scenario.accuracy,
         "KV heads stay the model's own in disaggregated serving; leave accuracy and --any-kv-heads out");
  refuse(question.trace.has_value(), "--trace is of replicas that prefill and decode; leave it out");
  refuse(question.scenario.slo.slowdown.has_value(),
         "slo.slowdown compares with a request alone on one kind of machine; take slo.ttft and slo.tpot");
  refuse_groups_by_load(question.scenario, "a recommendation is of one number of KV heads");
}

// The figures that the scenario changes are those of the prefill machine.
[[nodiscard]] sim::Machine resolve_decode(const RecommendationQuestion& question) {
  config::Scenario scenario = question.scenario;
  scenario.decode_machine = question.decode_machine;
  return with_offer(*resolve_decode_machine(scenario), question.offer);
}

// Values of the first that the second has, too, in the first's order.
template <class Value>
[[nodiscard]] std::vector<Value> common(const std::vector<Value>& first, const std::vector<Value>& second) {
  std::vector<Value> both;
  for (const Value& value : first)
    if (std::ranges::find(second, value) != second.end()) both.push_back(value);
  return both;
}

[[nodiscard]] DisaggregatedQuestion pools_question(const RecommendationQuestion& question, const sim::Machine& prefill,
                                                   const sim::Machine& decode, bool two_kinds, const ModelShape& model,
                                                   double rate) {
  const StackLimits first = own_limits(question, prefill, model), second = own_limits(question, decode, model);
  DisaggregatedQuestion asked{
      .scenario = question.scenario,
      .prefill = {prefill, offer_on(prefill, question)},
      .decode = {decode, offer_on(decode, question)},
      .two_kinds = two_kinds,
      .kv_dtypes = common(offered_kv_dtypes(question, first, prefill), offered_kv_dtypes(question, second, decode)),
      .sequences = question.sequences,
      .rate = rate,
      .count_requests = question.count_requests};
  std::vector<int> sizes = common(first.block_sizes, second.block_sizes);
  if (question.block_size) sizes = {*question.block_size};
  const std::string both = prefill.name + " and " + decode.name;
  if (asked.kv_dtypes.empty())
    throw InputError(kDecodeMachine, "the kernels of " + both + " have no KV dtype in common");
  if (sizes.empty()) throw InputError(kDecodeMachine, "the kernels of " + both + " have no block size in common");
  asked.block_size = sizes.front();
  return asked;
}

[[nodiscard]] FleetAlone alone_on(const RecommendationQuestion& question, const sim::Machine& machine,
                                  const ModelShape& model, const RequestWorkload& workload) {
  FleetAlone alone{.machine = machine.name};
  try {
    const FleetQuestion asked = fleet_question(question, machine, model, workload);
    alone.fleet = choose_fleet(asked, machine, model, workload);
  } catch (const InputError& error) {
    alone.why_not = error.what();
  }
  return alone;
}

// "; a alone serves it with 8 devices"
[[nodiscard]] std::string alone_text(const std::vector<FleetAlone>& alone) {
  std::string text;
  for (const FleetAlone& each : alone)
    if (each.fleet)
      text += "; " + each.machine + " alone serves it with " + std::to_string(each.fleet->choice().num_devices()) +
              " devices";
  return text;
}

}  // namespace

const FleetAlone* DisaggregatedRecommendation::no_worse() const {
  const PoolPair& pair = fleet.choice();
  const std::int64_t prefill = std::int64_t{pair.prefill_replicas} * fleet.prefill_layout().devices.devices();
  const std::int64_t all = fleet.num_devices();
  const FleetAlone* best = nullptr;
  for (std::size_t index = 0; index < alone.size(); ++index) {
    if (!alone[index].fleet) continue;
    const Layout& layout = alone[index].fleet->choice();
    const std::int64_t its = !fleet.two_kinds ? all : index == 0 ? prefill : all - prefill;
    const bool is_faster = layout.simulated->latency_mean <= pair.simulated->latency_mean;
    if (layout.num_devices() > its || (layout.num_devices() == its && !is_faster)) continue;
    if (best == nullptr || layout.num_devices() < best->fleet->choice().num_devices()) best = &alone[index];
  }
  return best;
}

DisaggregatedRecommendation recommend_disaggregated(const RecommendationQuestion& question,
                                                    const std::string& machine) {
  require_answerable(question);
  const sim::Machine prefill = with_offer(resolve_machine(question.scenario, machine), question.offer);
  const bool two_kinds = find_machine(question.decode_machine) != find_machine(machine);
  const sim::Machine decode = two_kinds ? resolve_decode(question) : prefill;
  const ModelShape model = resolve_model(question.scenario);
  const RequestWorkload workload = resolve_requests(question.scenario, model);
  const std::optional<double> rate = rate_of(workload);
  if (!rate)
    throw InputError(kDecodeMachine,
                     "how many replicas each pool has follows from the rate of the requests; add "
                     "--requests-per-second R");
  DisaggregatedRecommendation found{.model = model.name,
                                    .checkpoint = checkpoint_of(question.scenario.model.name),
                                    .slo_share = question.scenario.slo.share};
  found.alone.push_back(alone_on(question, prefill, model, workload));
  if (two_kinds) found.alone.push_back(alone_on(question, decode, model, workload));
  try {
    found.fleet = choose_pools(pools_question(question, prefill, decode, two_kinds, model, *rate), model, workload);
  } catch (const InputError& error) {
    throw InputError(error.what() + alone_text(found.alone));
  }
  return found;
}

}  // namespace dculab::study
