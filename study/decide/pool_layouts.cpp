#include "study/decide/pool_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/study/service_run.hpp"

namespace dculab::study {
namespace {

// A replica of its pool with one of the other, which is priced on its own.
struct PoolReplica {
  const Tried& tried;
  ModelShape model;
  EngineOptions options;
  sim::Deployment deployment;

  PoolReplica(const Tried& of, const sim::Deployment& link)
      : tried(of),
        model(with_kv_heads(of.serving.model, of.layout.setting.kv_heads)),
        options(sim::options_of(of.serving, of.layout.setting)),
        deployment(link) {
    deployment.prefill_replicas = deployment.decode_replicas = 1;
    deployment.prefill = deployment.decode = of.layout.devices;
  }

  [[nodiscard]] const sim::Machine& machine() const { return tried.serving.machine; }
  [[nodiscard]] EngineOptions with(int max_num_seqs) const {
    EngineOptions limited = options;
    limited.max_num_seqs = max_num_seqs;
    return limited;
  }
  [[nodiscard]] int ranks() const { return tried.layout.devices.ranks(); }
  [[nodiscard]] sim::OfflineRequests prompts() const { return {1, tried.serving.load.prompt_tokens, 1}; }
  [[nodiscard]] sim::OfflineRequests answers() const {
    return {1, tried.serving.load.prompt_tokens, tried.serving.load.output_tokens};
  }
};

[[nodiscard]] sim::ServicePool prefill_pool(const PoolReplica& replica, const EngineOptions& options) {
  return sim::prefill_pool(replica.machine(), replica.model, options, replica.deployment, replica.prompts());
}
[[nodiscard]] sim::ServicePool decode_pool(const PoolReplica& replica, const EngineOptions& options) {
  return sim::decode_pool(replica.machine(), replica.model, options, replica.deployment, replica.answers());
}

[[nodiscard]] sim::Served prefilled(const PoolReplica& replica) {
  const sim::ServicePool pool = prefill_pool(replica, replica.options);
  if (pool.batch == 0) return {};
  const double requests = replica.ranks() * pool.batch / pool.period().value();
  return {.batch = pool.batch,
          .most = pool.batch,
          .limit = sim::SequenceLimit::asked_for,
          .output_tokens_per_second = requests * replica.tried.serving.load.output_tokens,
          .tpot = {}};
}

[[nodiscard]] sim::Served decoded(const PoolReplica& replica) {
  const sim::Machine& machine = replica.machine();
  const ModelShape part = sim::part_of_a_device(replica.tried.layout.devices, machine, replica.model, replica.options);
  const auto step = [&](int batch) { return decode_pool(replica, replica.with(batch)).period(); };
  return sim::serve(replica.tried.serving.load,
                    {.fits =
                         [&](int batch) {
                           return sim::sequences_that_fit(machine, part, replica.with(batch), replica.answers()) >=
                                  batch;
                         },
                     .tpot = step,
                     .rate = [&](int batch) { return replica.ranks() * batch / step(batch).value(); }});
}

// Sets what the replica serves, or why_not.
void price(ReplicaRole role, const sim::Deployment& link, PoolLayout& pool) {
  const PoolReplica replica(pool.tried, link);
  Layout& layout = pool.tried.layout;
  if (const auto found = sim::problems(replica.deployment, replica.machine(), replica.model, replica.options);
      !found.empty()) {
    layout.why_not = found.front();
    return;
  }
  layout.served = role == ReplicaRole::prefill ? prefilled(replica) : decoded(replica);
  if (layout.served.batch == 0)
    set_why_none(layout);
  else
    pool.alone = (role == ReplicaRole::prefill ? prefill_pool : decode_pool)(replica, replica.with(1)).steps;
}

}  // namespace

std::vector<PoolLayout> pool_layouts(ReplicaRole role, const LayoutQuestion& question, const sim::Deployment& link,
                                     const std::vector<Dtype>& kv_dtypes, int most_devices) {
  std::vector<PoolLayout> found;
  for (const sim::ReplicaDevices& devices : replica_layouts(question.model, most_devices)) {
    if (devices.pipeline_parallel_size > 1) continue;
    for (const Dtype dtype : kv_dtypes) {
      std::string why_not;
      PoolLayout& pool = found.emplace_back();
      if (auto sound = tried_layout(question, devices, dtype, why_not)) {
        pool.tried = *std::move(sound);
        price(role, link, pool);
      } else {
        pool.tried.layout = {.devices = devices, .setting = {.kv_cache_dtype = dtype}, .why_not = why_not};
      }
    }
  }
  return found;
}

double requests_per_second(const Layout& layout, const sim::SteadyLoad& load) {
  return layout.served.output_tokens_per_second / load.output_tokens;
}

int replicas_for(const Layout& layout, const sim::SteadyLoad& load, double rate, double share) {
  const double carried = share * requests_per_second(layout, load);
  return static_cast<int>(std::min<double>(kMostReplicas + 1, std::max(1.0, std::ceil(rate / carried))));
}

Seconds latency_without_waits(const PoolLayout& prefill, const PoolLayout& decode, double rate) {
  const Layout& layout = decode.tried.layout;
  const double output = decode.tried.serving.load.output_tokens;
  const double tokens_per_second = rate / layout.devices.ranks() * output;  // of a scheduler
  const Seconds one = decode.alone, full = layout.served.tpot;
  const Seconds more = layout.served.batch > 1 ? (full - one) / (layout.served.batch - 1.0) : Seconds();
  // step = one + (sequences - 1) * more, sequences = tokens_per_second * step
  const double growth = tokens_per_second * more.value();
  const Seconds step = growth < 1 ? std::clamp((one - more) / (1 - growth), one, std::max(one, full)) : full;
  return prefill.alone + output * step;
}

}  // namespace dculab::study
