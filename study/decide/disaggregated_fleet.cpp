#include "study/decide/disaggregated_fleet.hpp"

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/decide/pool_growth.hpp"
#include "study/decide/pool_layouts.hpp"
#include "study/decide/preference.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

constexpr int kPairsAtOnce = 2;  // whatever cores there are
constexpr int kMostTies = 4;     // that are simulated after the first with as many devices serves
constexpr int kFewestPoolRequests = 256, kMostPoolRequests = 1024;

struct PoolCandidate {
  PoolPair pair;
  PoolGrowth growth{};
};

// What a simulation of a candidate found.
struct PoolOutcome {
  std::optional<PoolsService> served{};
  std::optional<Seconds> missed_ttft_alone{};
  std::string why_not{};
};

class PoolSearch {
 public:
  PoolSearch(const DisaggregatedQuestion& question, const ModelShape& model, const RequestWorkload& workload);
  [[nodiscard]] DisaggregatedFleet choose();

 private:
  void make_pairs();
  [[nodiscard]] bool is_offered(const PoolPair& pair) const;
  [[nodiscard]] std::int64_t num_devices(const PoolPair& pair) const;
  [[nodiscard]] sim::SimulatedServer server_of(const PoolPair& pair) const;
  [[nodiscard]] RequestWorkload requests_of(const PoolPair& pair) const;
  [[nodiscard]] std::vector<std::size_t> next_pairs();
  [[nodiscard]] Seconds least_latency(const PoolPair& pair) const {
    return latency_without_waits(prefill_[pair.prefill], decode_[pair.decode], question_.rate / pair.decode_replicas);
  }
  [[nodiscard]] int bits_of(const PoolPair& pair) const {
    return bits(prefill_[pair.prefill].tried.layout.setting.kv_cache_dtype);
  }
  [[nodiscard]] PoolOutcome simulated(const PoolPair& pair) const;
  void simulate(const std::vector<std::size_t>& together);
  void take(std::size_t index, const PoolOutcome& outcome);
  void grow(PoolCandidate& candidate, const PoolsService& served);
  // Than the best so far, with that mean latency.
  [[nodiscard]] bool is_better(const PoolPair& pair, Seconds latency) const;
  [[nodiscard]] DisaggregatedFleet result() const;
  [[noreturn]] void refuse() const;

  const DisaggregatedQuestion& question_;
  const ServiceLevel& slo_;
  const ModelShape& model_;
  const RequestWorkload& workload_;
  const sim::SteadyLoad load_;
  PoolLink link_;
  std::vector<PoolLayout> prefill_, decode_;
  std::vector<PoolCandidate> pairs_;
  std::optional<std::size_t> best_;
  int simulations_ = 0, ties_ = 0;
};

PoolSearch::PoolSearch(const DisaggregatedQuestion& question, const ModelShape& model, const RequestWorkload& workload)
    : question_(question),
      slo_(question.scenario.slo),
      model_(model),
      workload_(workload),
      load_(mean_load(workload, question.scenario.slo, question.sequences)),
      link_(link_between(question.scenario, model, question.prefill.machine,
                         question.two_kinds ? &question.decode.machine : nullptr)) {
  const auto layouts_of = [&](ReplicaRole role, const PoolKind& kind) {
    return pool_layouts(role, {question.scenario, kind.machine, model, load_, question.block_size}, link_.deployment,
                        question.kv_dtypes, kind.offer.devices);
  };
  prefill_ = layouts_of(ReplicaRole::prefill, question.prefill);
  decode_ = layouts_of(ReplicaRole::decode, question.decode);
}

bool PoolSearch::is_offered(const PoolPair& pair) const {
  if (std::max(pair.prefill_replicas, pair.decode_replicas) > kMostReplicas) return false;
  const FleetOffer::Replicas first{pair.prefill_replicas, prefill_[pair.prefill].tried.layout.devices};
  const FleetOffer::Replicas second{pair.decode_replicas, decode_[pair.decode].tried.layout.devices};
  const auto within = [](const FleetOffer& offer, const std::vector<FleetOffer::Replicas>& replicas) {
    return !offer.servers || offer.servers_for(replicas) <= *offer.servers;
  };
  if (!question_.two_kinds) return within(question_.prefill.offer, {first, second});
  return within(question_.prefill.offer, {first}) && within(question_.decode.offer, {second});
}

void PoolSearch::make_pairs() {
  const double share = has_limits(slo_) ? kMostUtilization : kOfferedShare;
  for (std::size_t first = 0; first < prefill_.size(); ++first)
    for (std::size_t second = 0; second < decode_.size(); ++second) {
      Layout& prefill = prefill_[first].tried.layout;
      Layout& decode = decode_[second].tried.layout;
      if (prefill.served.batch == 0 || decode.served.batch == 0) continue;
      if (prefill.setting.kv_cache_dtype != decode.setting.kv_cache_dtype) continue;
      prefill.replicas = replicas_for(prefill, load_, question_.rate, share);
      decode.replicas = replicas_for(decode, load_, question_.rate, share);
      PoolPair& pair = pairs_.emplace_back().pair;
      pair = {first, second, prefill.replicas, decode.replicas};
      if (slo_.latency && latency_without_waits(prefill_[first], decode_[second], 0) > *slo_.latency)
        pair.why_not = "a request of mean lengths alone takes longer than slo.latency";
    }
}

std::int64_t PoolSearch::num_devices(const PoolPair& pair) const {
  return std::int64_t{pair.prefill_replicas} * prefill_[pair.prefill].tried.layout.devices.devices() +
         std::int64_t{pair.decode_replicas} * decode_[pair.decode].tried.layout.devices.devices();
}

sim::SimulatedServer PoolSearch::server_of(const PoolPair& pair) const {
  return pools_server(
      {prefill_[pair.prefill].tried, decode_[pair.decode].tried, pair.prefill_replicas, pair.decode_replicas}, link_);
}

// Four times as many as are served at a time, by Little's law; whole samples, where one of several is simulated.
RequestWorkload PoolSearch::requests_of(const PoolPair& pair) const {
  RequestWorkload workload = workload_;
  if (question_.count_requests) {
    const Seconds latency = decode_[pair.decode].tried.layout.served.tpot * static_cast<double>(load_.output_tokens);
    workload.requests =
        std::clamp(static_cast<int>(4 * question_.rate * latency.value()), kFewestPoolRequests, kMostPoolRequests);
  }
  const int each = sim::one_in(server_of(pair).deployment);
  workload.requests = std::max(1, workload.requests / each) * each;
  return workload;
}

bool PoolSearch::is_better(const PoolPair& pair, Seconds latency) const {
  if (!best_) return true;
  const PoolPair& best = pairs_[*best_].pair;
  if (num_devices(pair) != num_devices(best)) return num_devices(pair) < num_devices(best);
  if (bits_of(pair) != bits_of(best)) return bits_of(pair) > bits_of(best);
  return latency * (1 + kServedResolution) < best.simulated->latency_mean;
}

// Those that may still be the best, in the order of the choice as far as it is known.
std::vector<std::size_t> PoolSearch::next_pairs() {
  std::vector<std::size_t> open;
  for (std::size_t index = 0; index < pairs_.size(); ++index) {
    PoolPair& pair = pairs_[index].pair;
    if (pair.simulated || !pair.why_not.empty()) continue;
    const Layout& prefill = prefill_[pair.prefill].tried.layout;
    pair.prefill_replicas = std::max(pair.prefill_replicas, prefill.replicas);
    pair.why_not = prefill.why_not;
    if (pair.why_not.empty() && !is_offered(pair))
      pair.why_not = "needs " + std::to_string(num_devices(pair)) + " devices or more";
    const bool ties = best_ && num_devices(pair) == num_devices(pairs_[*best_].pair);
    if (pair.why_not.empty() && is_better(pair, least_latency(pair)) && !(ties && ties_ >= kMostTies))
      open.push_back(index);
  }
  std::ranges::stable_sort(open, {}, [this](std::size_t index) {
    const PoolPair& pair = pairs_[index].pair;
    return std::tuple(num_devices(pair), -bits_of(pair), least_latency(pair));
  });
  const int most = std::min(kPairsAtOnce, kMostPoolSimulations - simulations_);
  open.resize(std::min(open.size(), static_cast<std::size_t>(most)));
  return open;
}

PoolOutcome PoolSearch::simulated(const PoolPair& pair) const {
  const sim::SimulatedServer server = server_of(pair);
  if (const auto found = sim::problems(server); !found.empty()) return {.why_not = found.front()};
  const RequestWorkload workload = requests_of(pair);
  PoolOutcome outcome{.served = serve_pools(server, workload, slo_)};
  if (slo_.ttft && outcome.served->service.ttft > *slo_.ttft)
    outcome.missed_ttft_alone = missed_ttft_alone(server, workload, slo_);
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
  const int cores = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kPairsAtOnce);
  sim::work_in_order({0, together.size()}, cores, make_worker, [](std::uint64_t, const std::string&) {});
  simulations_ += static_cast<int>(together.size());
  for (std::size_t index = 0; index < together.size(); ++index) take(together[index], outcomes[index]);
}

void PoolSearch::take(std::size_t index, const PoolOutcome& outcome) {
  PoolCandidate& candidate = pairs_[index];
  PoolPair& pair = candidate.pair;
  const bool ties = best_ && num_devices(pair) == num_devices(pairs_[*best_].pair);
  if (ties) ++ties_;
  pair.why_not = outcome.why_not;
  if (outcome.missed_ttft_alone) {
    Layout& prefill = prefill_[pair.prefill].tried.layout;
    prefill.why_not = "one request alone misses slo.ttft";
    prefill.missed = outcome.missed_ttft_alone;
  }
  if (!pair.why_not.empty() || outcome.missed_ttft_alone) return;
  if (has_limits(slo_) && outcome.served->service.slo_attainment < slo_.share) return grow(candidate, *outcome.served);
  pair.simulated = outcome.served->service;
  if (!is_better(pair, pair.simulated->latency_mean)) return;
  best_ = index;
  if (!ties) ties_ = 0;
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
  Layout& layout = prefill_[pair.prefill].tried.layout;
  if (slo_.ttft && served.service.ttft > *slo_.ttft) layout.replicas = std::max(layout.replicas, next->prefill);
}

void PoolSearch::refuse() const {
  std::vector<Refusal> found;
  const auto add = [&found](const std::vector<PoolLayout>& layouts, const std::string& pool) {
    for (const PoolLayout& each : layouts)
      if (const Layout& layout = each.tried.layout; !layout.why_not.empty())
        found.push_back({layout.why_not, pool + " " + layout_text(layout.devices), layout.missed});
  };
  add(prefill_, "prefill");
  add(decode_, "decode");
  for (const PoolCandidate& candidate : pairs_) {
    const PoolPair& pair = candidate.pair;
    const Layout &prefill = prefill_[pair.prefill].tried.layout, &decode = decode_[pair.decode].tried.layout;
    if (!prefill.why_not.empty()) continue;
    found.push_back({pair.why_not.empty() ? "needs more than " + std::to_string(kMostPoolSimulations) + " simulations"
                                          : pair.why_not,
                     "prefill " + layout_text(prefill.devices) + " with decode " + layout_text(decode.devices)});
  }
  throw InputError(model_.name + " with prefill on " + question_.prefill.machine.name + " and decode on " +
                       question_.decode.machine.name,
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
  for (const PoolLayout& each : prefill_) found.prefill.push_back(each.tried.layout);
  for (const PoolLayout& each : decode_) found.decode.push_back(each.tried.layout);
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
