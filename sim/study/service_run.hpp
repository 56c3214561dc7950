// What each pool of a disaggregated service does at full load, in closed form, for requests of one length.
//
//   hits     = hit rate of the KV store * prompt, in whole blocks
//   prompts  = as many as fit in max_num_batched_tokens without their hits, or one in chunks; no more than memory has
//              room for with their hits. KV that is read or sent waits outside of the blocks, as in sim/serving/cluster
//   prefill  = prompts * prompt tokens / max(steps, reading their hits from the store, sending their KV to decode)
//   sequences = min(max_num_seqs, those that fit in memory)
//   decode   = sequences / step, contexts spread evenly from prompt + 1 to prompt + output
//   of a node = that of a group of devices with sequences of its own * groups of a node
//   step     = price of the plan, or of two micro-batches that overlap, * rebalancing_factor
//
// Reads and transfers hide behind the steps of other requests, so the slowest of the three counts. What it leaves out:
// requests of unequal length, groups of unequal load, and every hour in which the service is not full.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "sim/hardware/deployment.hpp"
#include "sim/study/offline_run.hpp"

namespace dculab::sim {

struct ServicePool {
  int batch = 0;  // sequences, or prompts, of a group in a step; 0: not one fits, and nothing else is filled in
  std::int64_t tokens = 0;  // that a group computes in a step
  BatchLimit limit = BatchLimit::max_num_seqs;
  MeasuredRun measured_run;  // of the steps between two answers of a group
  Seconds steps;
  Seconds reading, sending;                // KV of the same requests
  double tokens_per_second = 0;            // of a node: prompt tokens with hits, or output tokens
  std::map<std::string, Seconds> terms{};  // of `steps`; "hidden exchange" is not in it

  // That of `terms`; none: it spends nothing on it.
  [[nodiscard]] Seconds term(const std::string& name) const;
  [[nodiscard]] Seconds period() const { return std::max({steps, reading, sending}); }
};

struct ServiceRun {
  ServicePool prefill, decode;
};

// Preconditions: problems() of the deployment are empty, and it is disaggregated; counts are at least 1.
[[nodiscard]] ServiceRun service_run(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                     const Deployment& deployment, const OfflineRequests& work);

// One of them alone.
[[nodiscard]] ServicePool prefill_pool(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                       const Deployment& deployment, const OfflineRequests& work);
[[nodiscard]] ServicePool decode_pool(const Machine& machine, const ModelShape& model, EngineOptions options,
                                      const Deployment& deployment, const OfflineRequests& work);

// What `steps` is the sum of.
inline constexpr std::array<const char*, 8> kPoolTerms{
    "attention", "experts",    "other products", "other kernels", "dispatch and combine", "all-reduce and gather",
    "host",      "rebalancing"};

// What limits a pool: "KV reads" or "KV transfer" where it waits for these, otherwise the largest of kPoolTerms, and
// the share of the steps that this takes.
struct PoolBound {
  std::string name;
  std::optional<double> share{};
};

[[nodiscard]] PoolBound bound_of(const ServicePool& pool);

// What a step spends its time on: all of kPoolTerms but the last, "dispatch and combine" as far as nothing hides it.
// Beside these "hidden exchange".
[[nodiscard]] std::map<std::string, Seconds> step_terms(const Machine& machine, const RunStep& step);

}  // namespace dculab::sim
