#include "study/decide/replica_count.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

// What a replica serves when it is simulated may be more than in closed form, where lengths are means and limits come
// in steps: the search begins with fewer replicas.
constexpr double kClosedFormMargin = 0.75;

// A layout's replica under its part of the load.
class ReplicaTrial {
 public:
  ReplicaTrial(const Tried& tried, const AskedLoad& asked, Sample sample)
      : serving_(tried.serving),
        setting_(tried.layout.setting),
        served_(tried.layout.served),
        asked_(asked),
        sample_(sample) {}

  // With the sequences at a time with which most requests meet the level; nothing where none carries the load.
  [[nodiscard]] std::optional<ReplicaService> best_of(int replicas);

  // All but the first, those of `served`, need room for them.
  [[nodiscard]] std::vector<int> sequences_to_try() const;

 private:
  [[nodiscard]] bool carries(int batch, double rate);
  [[nodiscard]] ReplicaService serve_share(int batch, int replicas) const;

  const sim::ServingCase& serving_;
  const sim::Setting setting_;
  const sim::Served served_;
  const AskedLoad& asked_;
  const Sample sample_;
  std::map<int, double> full_;  // requests per second, by sequences at a time
};

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
    // Of groups that share experts one is simulated.
    const int ranks = serving_.devices.ranks();
    const double at_a_time = workload.requests_per_second * (served_.tpot * asked_.load.output_tokens).value() / ranks;
    workload.requests = ranks * sampled_requests(at_a_time, sample_);
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
    const bool waits = !asked_.slo.ttft || service.ttft > *asked_.slo.ttft;
    if (service.slo_attainment >= asked_.slo.share || !waits) break;
  }
  return best;
}

void search_replicas(Tried& tried, const AskedLoad& asked, int most, Sample sample) {
  Layout& layout = tried.layout;
  const int least = layout.replicas;
  ReplicaTrial trial(tried, asked, sample);
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
  layout.replicas = served ? good : layout.why_not.empty() ? most + 1 : 0;
  if (served) take_service(tried, *served);
}

}  // namespace

int fewest_replicas(const Layout& layout, const AskedLoad& asked) {
  const double requests = layout.served.output_tokens_per_second / asked.load.output_tokens;
  const double carried = has_limits(asked.slo) ? requests / kClosedFormMargin : kOfferedShare * requests;
  return static_cast<int>(std::min<double>(kMostReplicas + 1, std::max(1.0, std::ceil(*asked.rate / carried))));
}

std::optional<ReplicaService> best_service(const Tried& tried, const AskedLoad& asked, int replicas, Sample sample) {
  return ReplicaTrial(tried, asked, sample).best_of(replicas);
}

void take_service(Tried& tried, const ReplicaService& service) {
  Layout& layout = tried.layout;
  layout.simulated = service;
  if (service.max_num_seqs != layout.served.batch)
    layout.served = sim::serve_with(tried.serving, layout.setting, service.max_num_seqs);
}

bool meets_level_alone(Tried& tried, const AskedLoad& asked) {
  Layout& layout = tried.layout;
  const ReplicaService service =
      serve_alone(tried.serving, layout.setting, layout.served.batch, asked.workload, asked.slo);
  if (may_meet(service, asked.slo)) return true;
  const bool by_ttft = asked.slo.ttft && service.ttft > *asked.slo.ttft;
  layout.why_not = by_ttft ? "one request alone misses slo.ttft" : "one request alone misses the slo";
  if (by_ttft) layout.missed = service.ttft;
  return false;
}

int sampled_requests(double at_a_time, Sample sample) {
  const auto clamped = [at_a_time](double times, int fewest, int most) {
    return static_cast<int>(std::clamp<double>(times * at_a_time, fewest, most));
  };
  return sample == Sample::few ? clamped(4, 64, 512) : clamped(8, 512, 1024);
}

void add_replicas(Tried& tried, const AskedLoad& asked, int most_replicas, Sample sample) {
  tried.sample = asked.count_requests ? sample : Sample::many;
  try {
    search_replicas(tried, asked, std::min(kMostReplicas, most_replicas), sample);
  } catch (const InputError& error) {
    tried.layout.simulated.reset();
    tried.layout.replicas = 0;
    tried.layout.why_not = error.what();
  }
}

int sequences_for(const Tried& tried, const AskedLoad& asked, int replicas) {
  ReplicaTrial trial(tried, asked, Sample::many);
  if (trial.sequences_to_try().size() == 1) return tried.layout.served.batch;
  const auto best = trial.best_of(replicas);
  return best ? best->max_num_seqs : tried.layout.served.batch;
}

}  // namespace dculab::study
