#include "study/decide/replica_count.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

constexpr int kFewestRequests = 64, kMostRequests = 512;  // of a scheduler's, of a workload that does not say how many

// What a replica serves when it is simulated may be more than in closed form, where lengths are means and limits come
// in steps: the search begins with fewer replicas.
constexpr double kClosedFormMargin = 0.75;

// A layout's replica under its part of the load.
class ReplicaTrial {
 public:
  ReplicaTrial(const Tried& tried, const AskedLoad& asked)
      : serving_(tried.serving), setting_(tried.layout.setting), served_(tried.layout.served), asked_(asked) {}

  // With the sequences at a time with which most requests meet the level; nothing where none carries the load.
  [[nodiscard]] std::optional<ReplicaService> best_of(int replicas);

 private:
  [[nodiscard]] std::vector<int> sequences_to_try() const;
  [[nodiscard]] bool carries(int batch, double rate);
  [[nodiscard]] ReplicaService serve_share(int batch, int replicas) const;

  const sim::ServingCase& serving_;
  const sim::Setting setting_;
  const sim::Served served_;
  const AskedLoad& asked_;
  std::map<int, double> full_;  // requests per second, by sequences at a time
};

// All but the first need room for them.
std::vector<int> ReplicaTrial::sequences_to_try() const {
  constexpr int kMostTimes = 8;
  const bool waits_count = asked_.slo.ttft || asked_.slo.latency || asked_.slo.slowdown;
  std::vector<int> tried{served_.batch};
  if (served_.limit != sim::SequenceLimit::tpot || !waits_count) return tried;
  const int most = std::min(served_.room, kMostTimes * served_.batch);
  for (int more = 0; (more = (3 * tried.back() + 1) / 2) <= most;) tried.push_back(more);
  return tried;
}

bool ReplicaTrial::carries(int batch, double rate) {
  const double closed = batch == served_.batch ? served_.output_tokens_per_second
                                               : sim::served_rate(serving_.machine, serving_, setting_, batch);
  if (rate <= kOfferedShare * closed / asked_.load.output_tokens) return true;
  const auto [full, is_new] = full_.try_emplace(batch, 0.0);
  if (is_new)
    full->second =
        serve_full(replica_server(serving_, setting_, batch), asked_.workload, asked_.load).requests_per_second;
  return rate <= kMostUtilization * full->second;
}

ReplicaService ReplicaTrial::serve_share(int batch, int replicas) const {
  RequestWorkload workload = share_of(asked_.workload, replicas);
  if (asked_.count_requests) {
    // Four times as many as are served at a time by Little's law; of groups that share experts one is simulated.
    const int ranks = serving_.devices.ranks();
    const double at_a_time = workload.requests_per_second * (served_.tpot * asked_.load.output_tokens).value() / ranks;
    workload.requests = ranks * std::clamp(static_cast<int>(4 * at_a_time), kFewestRequests, kMostRequests);
  }
  return serve_requests(serving_, setting_, batch, workload, asked_.slo);
}

std::optional<ReplicaService> ReplicaTrial::best_of(int replicas) {
  std::optional<ReplicaService> best;
  for (const int batch : sequences_to_try()) {
    if (!carries(batch, *asked_.rate / replicas)) continue;
    const ReplicaService service = serve_share(batch, replicas);
    if (best && service.slo_attainment <= best->slo_attainment) break;
    best = service;
    const bool waits = !asked_.slo.ttft || service.ttft_p90 > *asked_.slo.ttft;
    if (service.slo_attainment >= asked_.slo.share || !waits) break;
  }
  return best;
}

void take_sequences(Tried& tried, int sequences) {
  if (sequences == tried.layout.served.batch) return;
  sim::SteadyLoad& load = tried.serving.load;
  load.sequences = sequences;
  load.why_sequences = sim::SequenceLimit::waits;
  tried.layout.served = sim::serve(tried.serving, tried.layout.setting);
}

}  // namespace

int fewest_replicas(const Layout& layout, const AskedLoad& asked) {
  const double requests = layout.served.output_tokens_per_second / asked.load.output_tokens;
  const double carried = has_limits(asked.slo) ? requests / kClosedFormMargin : kOfferedShare * requests;
  return static_cast<int>(std::min<double>(kMostReplicas + 1, std::max(1.0, std::ceil(*asked.rate / carried))));
}

bool meets_level_alone(Tried& tried, const AskedLoad& asked) {
  Layout& layout = tried.layout;
  const ReplicaService service =
      serve_alone(tried.serving, layout.setting, layout.served.batch, asked.workload, asked.slo);
  if (may_meet(service, asked.slo)) return true;
  const bool by_ttft = asked.slo.ttft && service.ttft_p90 > *asked.slo.ttft;
  layout.why_not = by_ttft ? "one request alone misses slo.ttft" : "one request alone misses the slo";
  if (by_ttft) layout.missed = service.ttft_p90;
  return false;
}

void add_replicas(Tried& tried, const AskedLoad& asked, std::int64_t most_devices) {
  Layout& layout = tried.layout;
  const int least = layout.replicas, most = static_cast<int>(std::min<std::int64_t>(
                                         {kMostReplicas, most_devices / layout.devices.devices(),
                                          asked.offer.most_replicas(layout.devices).value_or(kMostReplicas)}));
  ReplicaTrial trial(tried, asked);
  std::optional<ReplicaService> served;
  const auto meets = [&](int replicas) {
    const std::optional<ReplicaService> service = trial.best_of(replicas);
    if (!service || service->slo_attainment < asked.slo.share) return false;
    served = service;
    return true;
  };
  int good = least, bad = least - 1;
  for (; good <= most && !meets(good); bad = good, good = std::max(good + 1, std::min(2 * good, most)))
    if (good == least && !meets_level_alone(tried, asked)) break;
  while (served && good - bad > 1) {
    const int middle = bad + (good - bad) / 2;
    (meets(middle) ? good : bad) = middle;
  }
  layout.simulated = served;
  layout.replicas = served ? good : 0;
  if (served) take_sequences(tried, served->max_num_seqs);
  if (!served && layout.why_not.empty())
    layout.why_not = "misses the slo on " + std::to_string(std::int64_t{most} * layout.devices.devices()) + " devices";
}

void choose_sequences(Tried& tried, const AskedLoad& asked, int replicas) {
  if (const auto best = ReplicaTrial(tried, asked).best_of(replicas)) take_sequences(tried, best->max_num_seqs);
}

}  // namespace dculab::study
