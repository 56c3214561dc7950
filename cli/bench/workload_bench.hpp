// `dculab bench --workload`: serves conversations on the real engine and reports what the papers report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/speculation_choices.hpp"
#include "core/kv/retention.hpp"
#include "engine/parallel/division.hpp"
#include "present/output/report.hpp"

namespace dculab::cli {

struct WorkloadChoices {
  std::string file;  // in ShareGPT's format
  int num_prompts = 100;
  std::uint64_t seed = 1;
  int max_num_seqs = 256;
  int max_num_batched_tokens = 2048;
  bool enable_prefix_caching = false;
  std::string prefix_eviction = "lru";
  SkipChoices skip;
  int data_parallel_size = 1;  // replicas that share the CPU
  std::string routing = "round_robin";
};

// What `bench` knows besides: which model, on what, with which caches. A row for each block size and KV dtype.
struct WorkloadSetting {
  std::string model;
  std::string random_weights;
  std::string device;
  int threads = 0;
  engine::Division division{};
  std::string activations = "exact";
  std::vector<int> block_sizes;
  std::vector<std::string> kv_cache_dtypes;
  KvRetention retention{};
  SpeculationChoices speculation{};
};

[[nodiscard]] present::Report bench_workload(const WorkloadChoices& choices, const WorkloadSetting& setting);

}  // namespace dculab::cli
