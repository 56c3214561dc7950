// The options of `dculab bench --workload` with conversations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/step_grid.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/speculation_choices.hpp"
#include "study/measure/served_conversations.hpp"

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

// What a grid has and a workload does not is refused with it, and the other way round. `set`: of a scenario.
void add_workload_options(CLI::App& command, WorkloadChoices& choices, std::vector<std::string>& set);

// What `bench` knows besides: on what, with which weights and drafts. A variant for each block size and KV dtype.
struct WorkloadSetting {
  const GridChoices& grid;
  std::string random_weights;
  std::string device;
  int threads = 0;
  const SpeculationChoices& speculation;
};

// Throws InputError.
[[nodiscard]] study::ConversationQuestion conversation_question(const WorkloadChoices& choices,
                                                                const WorkloadSetting& setting);

}  // namespace dculab::cli
