#include "study/decide/replica_count.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "study/decide/serving_case.hpp"

namespace dculab::study {
namespace {

constexpr int kFewestRequests = 64, kMostRequests = 512;  // of a scheduler's, of a workload that does not say how many

// What a replica serves when it is simulated may be more than in closed form, where lengths are means and limits come
// in steps: the search begins with fewer replicas.
constexpr double kClosedFormMargin = 0.75;

[[nodiscard]] ReplicaService serve_share(const Tried& tried, const AskedLoad& asked, int replicas) {
  const Layout& layout = tried.layout;
  RequestWorkload workload = share_of(asked.workload, replicas);
  if (asked.count_requests) {
    // Four times as many as are served at a time by Little's law; of groups that share experts one is simulated.
    const int ranks = layout.devices.ranks();
    const double at_a_time =
        workload.requests_per_second * (layout.served.tpot * asked.load.output_tokens).value() / ranks;
    workload.requests = ranks * std::clamp(static_cast<int>(4 * at_a_time), kFewestRequests, kMostRequests);
  }
  return serve_requests(tried.serving, layout.setting, layout.served.batch, workload, asked.slo);
}

[[nodiscard]] double full_rate(const Tried& tried, const AskedLoad& asked) {
  const Layout& layout = tried.layout;
  return serve_full(replica_server(tried.serving, layout.setting, layout.served.batch), asked.workload, asked.load)
      .requests_per_second;
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
  layout.why_not = asked.slo.ttft && service.ttft_p90 > *asked.slo.ttft ? "one request alone misses slo.ttft"
                                                                        : "one request alone misses the slo";
  return false;
}

void add_replicas(Tried& tried, const AskedLoad& asked, std::int64_t most_devices) {
  Layout& layout = tried.layout;
  const int least = layout.replicas, most = static_cast<int>(std::min<std::int64_t>(
                                         {kMostReplicas, most_devices / layout.devices.devices(),
                                          asked.offer.most_replicas(layout.devices).value_or(kMostReplicas)}));
  std::optional<ReplicaService> served;
  std::optional<double> full;  // requests per second
  const auto meets = [&](int replicas) {
    const double share = *asked.rate / replicas;
    if (share > kOfferedShare * layout.served.output_tokens_per_second / asked.load.output_tokens) {
      if (!full) full = full_rate(tried, asked);
      if (share > kMostUtilization * *full) return false;
    }
    const ReplicaService service = serve_share(tried, asked, replicas);
    if (service.slo_attainment < asked.slo.share) return false;
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
  if (!served && layout.why_not.empty())
    layout.why_not = "misses the slo on " + std::to_string(std::int64_t{most} * layout.devices.devices()) + " devices";
}

}  // namespace dculab::study
