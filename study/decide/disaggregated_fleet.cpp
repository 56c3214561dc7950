#include "study/decide/disaggregated_fleet.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/decide/pool_growth.hpp"
#include "study/decide/pool_layouts.hpp"
#include "study/decide/preference.hpp"
#include "study/decide/serving_case.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

constexpr std::size_t kPairsAtOnce = 2;  // whatever cores there are
constexpr int kFewestPoolRequests = 256, kMostPoolRequests = 1024;

struct PoolCandidate {
  PoolPair pair;
  PoolGrowth growth{};
};

// What a simulation of a candidate found.
struct PoolOutcome {
  std::optional<PoolsService> served{};
  bool misses_ttft_alone = false;
  std::string why_not{};
};

class PoolSearch {
 public:
  PoolSearch(const DisaggregatedQuestion& question, const ModelShape& model, const RequestWorkload& workload);
  [[nodiscard]] DisaggregatedFleet choose();

 private:
  void require_link();
  void make_pairs();
  [[nodiscard]] int fewest_replicas(const Layout& layout) const;
  [[nodiscard]] bool is_offered(const PoolPair& pair) const;
  [[nodiscard]] std::int64_t num_devices(const PoolPair& pair) const;
  [[nodiscard]] sim::SimulatedServer server_of(const PoolPair& pair) const;
  [[nodiscard]] RequestWorkload requests_of(const PoolPair& pair) const;
  [[nodiscard]] std::vector<std::size_t> next_pairs();
  [[nodiscard]] PoolOutcome simulated(const PoolPair& pair) const;
  void simulate(const std::vector<std::size_t>& together);
  void take(std::size_t index, const PoolOutcome& outcome);
  void grow(PoolCandidate& candidate, const PoolsService& served);
  [[nodiscard]] bool is_better(const PoolPair& a, const PoolPair& b) const;
  [[nodiscard]] DisaggregatedFleet result() const;
  [[noreturn]] void refuse() const;

  const DisaggregatedQuestion& question_;
  const ServiceLevel& slo_;
  const ModelShape& model_;
  const RequestWorkload& workload_;
  const sim::SteadyLoad load_;
  PoolLink link_;
  std::vector<Tried> prefill_, decode_;
  std::vector<PoolCandidate> pairs_;
  std::optional<std::size_t> best_;
  int simulations_ = 0;
};

PoolSearch::PoolSearch(const DisaggregatedQuestion& question, const ModelShape& model, const RequestWorkload& workload)
    : question_(question),
      slo_(question.scenario.slo),
      model_(model),
      workload_(workload),
      load_(mean_load(workload, question.scenario.slo, question.sequences)),
      link_{question.scenario.deployment, question.two_kinds} {
  require_link();
  const auto layouts_of = [&](ReplicaRole role, const PoolKind& kind) {
    return pool_layouts(role, {question.scenario, kind.machine, model, load_, question.block_size}, link_.deployment,
                        question.kv_dtypes, kind.offer.devices);
  };
  prefill_ = layouts_of(ReplicaRole::prefill, question.prefill);
  decode_ = layouts_of(ReplicaRole::decode, question.decode);
}

void PoolSearch::require_link() {
  const sim::Machine &first = question_.prefill.machine, &second = question_.decode.machine;
  sim::Deployment smallest = link_.deployment;
  smallest.prefill_replicas = smallest.decode_replicas = 1;
  refuse_deployment(question_.scenario,
                    sim::problems(smallest, first, model_, resolve_options(question_.scenario, model_, first),
                                  link_.two_kinds ? &second : nullptr));
  if (link_.two_kinds) link_.deployment = sim::with_link_between(link_.deployment, first, second);
}

int PoolSearch::fewest_replicas(const Layout& layout) const {
  const double carried = (has_limits(slo_) ? kMostUtilization : kOfferedShare) * requests_per_second(layout, load_);
  return static_cast<int>(std::min<double>(kMostReplicas + 1, std::max(1.0, std::ceil(question_.rate / carried))));
}

bool PoolSearch::is_offered(const PoolPair& pair) const {
  if (std::max(pair.prefill_replicas, pair.decode_replicas) > kMostReplicas) return false;
  const FleetOffer::Replicas first{pair.prefill_replicas, prefill_[pair.prefill].layout.devices};
  const FleetOffer::Replicas second{pair.decode_replicas, decode_[pair.decode].layout.devices};
  const auto within = [](const FleetOffer& offer, const std::vector<FleetOffer::Replicas>& replicas) {
    return !offer.servers || offer.servers_for(replicas) <= *offer.servers;
  };
  if (!question_.two_kinds) return within(question_.prefill.offer, {first, second});
  return within(question_.prefill.offer, {first}) && within(question_.decode.offer, {second});
}

void PoolSearch::make_pairs() {
  for (std::size_t first = 0; first < prefill_.size(); ++first)
    for (std::size_t second = 0; second < decode_.size(); ++second) {
      Layout& prefill = prefill_[first].layout;
      Layout& decode = decode_[second].layout;
      if (prefill.served.batch == 0 || decode.served.batch == 0) continue;
      if (prefill.setting.kv_cache_dtype != decode.setting.kv_cache_dtype) continue;
      prefill.replicas = fewest_replicas(prefill);
      decode.replicas = fewest_replicas(decode);
      pairs_.push_back({.pair = {first, second, prefill.replicas, decode.replicas}});
    }
}

std::int64_t PoolSearch::num_devices(const PoolPair& pair) const {
  return std::int64_t{pair.prefill_replicas} * prefill_[pair.prefill].layout.devices.devices() +
         std::int64_t{pair.decode_replicas} * decode_[pair.decode].layout.devices.devices();
}

sim::SimulatedServer PoolSearch::server_of(const PoolPair& pair) const {
  return pools_server({prefill_[pair.prefill], decode_[pair.decode], pair.prefill_replicas, pair.decode_replicas},
                      link_);
}

// Four times as many as are served at a time, by Little's law; whole samples, where one of several is simulated.
RequestWorkload PoolSearch::requests_of(const PoolPair& pair) const {
  RequestWorkload workload = workload_;
  if (question_.count_requests) {
    const Seconds latency = decode_[pair.decode].layout.served.tpot * static_cast<double>(load_.output_tokens);
    workload.requests =
        std::clamp(static_cast<int>(4 * question_.rate * latency.value()), kFewestPoolRequests, kMostPoolRequests);
  }
  const int each = sim::one_in(server_of(pair).deployment);
  workload.requests = std::max(1, workload.requests / each) * each;
  return workload;
}

// Those that may still be the best, the fewest devices first.
std::vector<std::size_t> PoolSearch::next_pairs() {
  std::vector<std::size_t> open;
  for (std::size_t index = 0; index < pairs_.size(); ++index) {
    PoolPair& pair = pairs_[index].pair;
    if (pair.simulated || !pair.why_not.empty()) continue;
    const Layout& prefill = prefill_[pair.prefill].layout;
    pair.prefill_replicas = std::max(pair.prefill_replicas, prefill.replicas);
    pair.why_not = prefill.why_not;
    if (pair.why_not.empty() && !is_offered(pair))
      pair.why_not = "needs " + std::to_string(num_devices(pair)) + " devices or more";
    if (!pair.why_not.empty() || (best_ && num_devices(pair) > num_devices(pairs_[*best_].pair))) continue;
    open.push_back(index);
  }
  std::ranges::stable_sort(open, {}, [this](std::size_t index) { return num_devices(pairs_[index].pair); });
  open.resize(std::min({open.size(), kPairsAtOnce, static_cast<std::size_t>(kMostPoolSimulations - simulations_)}));
  return open;
}

PoolOutcome PoolSearch::simulated(const PoolPair& pair) const {
  const sim::SimulatedServer server = server_of(pair);
  if (const auto found = sim::problems(server); !found.empty()) return {.why_not = found.front()};
  const RequestWorkload workload = requests_of(pair);
  PoolOutcome outcome{.served = serve_pools(server, workload, slo_)};
  if (slo_.ttft && outcome.served->ttft > *slo_.ttft)
    outcome.misses_ttft_alone = !meets_ttft_alone(server, workload, slo_);
  return outcome;
}

void PoolSearch::simulate(const std::vector<std::size_t>& together) {
  std::vector<PoolOutcome> outcomes(together.size());
  const auto make_worker = [&]() -> sim::ChunkWorker {
    return [&](std::uint64_t index) {
      outcomes[index] = simulated(pairs_[together[index]].pair);
      return std::string();
    };
  };
  const int most = static_cast<int>(kPairsAtOnce);
  const int cores = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most);
  sim::work_in_order({0, together.size()}, cores, make_worker, [](std::uint64_t, const std::string&) {});
  simulations_ += static_cast<int>(together.size());
  for (std::size_t index = 0; index < together.size(); ++index) take(together[index], outcomes[index]);
}

void PoolSearch::take(std::size_t index, const PoolOutcome& outcome) {
  PoolCandidate& candidate = pairs_[index];
  PoolPair& pair = candidate.pair;
  pair.why_not = outcome.why_not;
  if (outcome.misses_ttft_alone) prefill_[pair.prefill].layout.why_not = "one request alone misses slo.ttft";
  if (!pair.why_not.empty() || outcome.misses_ttft_alone) return;
  if (has_limits(slo_) && outcome.served->service.slo_attainment < slo_.share) return grow(candidate, *outcome.served);
  pair.simulated = outcome.served->service;
  if (!best_ || is_better(pair, pairs_[*best_].pair)) best_ = index;
}

void PoolSearch::grow(PoolCandidate& candidate, const PoolsService& served) {
  PoolPair& pair = candidate.pair;
  const auto next = candidate.growth.next({pair.prefill_replicas, pair.decode_replicas}, served, slo_);
  if (!next) {
    pair.why_not = "misses the slo, and more replicas of neither pool help";
    return;
  }
  pair.prefill_replicas = next->prefill;
  pair.decode_replicas = next->decode;
  // Decode replicas do not change when prompts are computed: no pair with this layout gets along with fewer.
  Layout& layout = prefill_[pair.prefill].layout;
  if (slo_.ttft && served.ttft > *slo_.ttft) layout.replicas = std::max(layout.replicas, next->prefill);
}

// Precondition: both were simulated.
bool PoolSearch::is_better(const PoolPair& a, const PoolPair& b) const {
  if (num_devices(a) != num_devices(b)) return num_devices(a) < num_devices(b);
  const auto bits_of = [this](const PoolPair& pair) {
    return bits(prefill_[pair.prefill].layout.setting.kv_cache_dtype);
  };
  if (bits_of(a) != bits_of(b)) return bits_of(a) > bits_of(b);
  return a.simulated->latency_mean * (1 + kServedResolution) < b.simulated->latency_mean;
}

void PoolSearch::refuse() const {
  std::vector<std::pair<std::string, std::string>> found;
  const auto add = [&found](const std::vector<Tried>& layouts, const std::string& pool) {
    for (const Tried& tried : layouts)
      if (!tried.layout.why_not.empty())
        found.emplace_back(tried.layout.why_not, pool + " " + layout_text(tried.layout.devices));
  };
  add(prefill_, "prefill");
  add(decode_, "decode");
  for (const PoolCandidate& candidate : pairs_) {
    const PoolPair& pair = candidate.pair;
    const Layout &prefill = prefill_[pair.prefill].layout, &decode = decode_[pair.decode].layout;
    if (!prefill.why_not.empty()) continue;
    const std::string unknown = "not found in " + std::to_string(kMostPoolSimulations) + " simulations";
    found.emplace_back(pair.why_not.empty() ? unknown : pair.why_not,
                       "prefill " + layout_text(prefill.devices) + " with decode " + layout_text(decode.devices));
  }
  const std::string& first = question_.prefill.machine.name;
  throw InputError(model_.name + " with prefill on " + first + " and decode on " + question_.decode.machine.name,
                   "no layouts serve the load (" + reasons_text(found) + "); " +
                       (question_.prefill.offer.servers ? "offer more servers, " : "") +
                       "take weights of fewer bits, a looser slo or another machine");
}

DisaggregatedFleet PoolSearch::result() const {
  DisaggregatedFleet found;
  found.prefill_offer = question_.prefill.offer;
  found.decode_offer = question_.decode.offer;
  found.two_kinds = question_.two_kinds;
  found.rate = question_.rate;
  found.load = load_;
  for (const Tried& tried : prefill_) found.prefill.push_back(tried.layout);
  for (const Tried& tried : decode_) found.decode.push_back(tried.layout);
  for (const PoolCandidate& candidate : pairs_) {
    PoolPair& pair = found.pairs.emplace_back(candidate.pair);
    if (pair.why_not.empty()) pair.why_not = found.prefill[pair.prefill].why_not;
  }
  found.chosen = *best_;
  found.server = server_of(found.choice());
  found.expected = expected_service(found.server, requests_of(found.choice()), slo_);
  found.simulations = simulations_;
  return found;
}

DisaggregatedFleet PoolSearch::choose() {
  make_pairs();
  for (std::vector<std::size_t> together = next_pairs(); !together.empty(); together = next_pairs()) simulate(together);
  if (!best_) refuse();
  return result();
}

}  // namespace

std::int64_t DisaggregatedFleet::num_devices(const PoolPair& pair) const {
  return std::int64_t{pair.prefill_replicas} * prefill[pair.prefill].devices.devices() +
         std::int64_t{pair.decode_replicas} * decode[pair.decode].devices.devices();
}

int DisaggregatedFleet::servers() const {
  const FleetOffer::Replicas first{choice().prefill_replicas, prefill_layout().devices};
  const FleetOffer::Replicas second{choice().decode_replicas, decode_layout().devices};
  if (!two_kinds) return prefill_offer.servers_for({first, second});
  return prefill_offer.servers_for({first}) + decode_offer.servers_for({second});
}

DisaggregatedFleet choose_pools(const DisaggregatedQuestion& question, const ModelShape& model,
                                const RequestWorkload& workload) {
  return PoolSearch(question, model, workload).choose();
}

}  // namespace dculab::study
