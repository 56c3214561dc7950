// Conversations served by the engine here, and what the papers report of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/expert_histogram.hpp"
#include "core/serving_loop.hpp"
#include "core/units.hpp"
#include "engine/generate/generator.hpp"
#include "engine/generate/replica_desk.hpp"
#include "engine/measure/step_bench.hpp"

namespace dculab::study {

// LLM-CoOpt's equations 11 and 12, and the two figures that vLLM's benchmark_throughput prints.
struct ConversationFigures {
  Seconds latency_sum;  // eq. 11: of all requests, from arrival to last token
  Seconds latency_mean;
  double requests_per_second = 0;
  double tokens_per_second = 0;            // prompts and answers: "all throughput"
  double generated_tokens_per_second = 0;  // eq. 12: "generate throughput"
  Seconds ttft_median, tpot_median;
};

// Precondition: some request was served.
[[nodiscard]] ConversationFigures conversation_figures(const ServingReport& report);

// One way to keep K and V.
struct ConversationVariant {
  std::string kv_cache_dtype;  // as it was asked for
  engine::GeneratorOptions options;
};

struct ConversationQuestion {
  std::string file;  // in ShareGPT's format
  int num_prompts = 100;
  std::uint64_t seed = 1;         // of which, and in what order
  std::string model;              // a folder, or a name under scenarios/models
  std::string random_weights;     // a dtype; empty: the folder's own weights
  std::string speculative_model;  // a draft model; empty: none
  std::vector<ConversationVariant> variants;
  engine::ReplicaChoices replicas{};  // several share the CPU
};

// The conversations with one variant.
struct ServedConversations {
  std::string kv_cache_dtype;
  int block_size = 0;
  ServingReport report{};
  ConversationFigures figures{};
  ExpertHistogram experts{};  // empty of several replicas, and of a model without experts
};

struct ConversationAnswer {
  std::string device, build;              // that served
  std::vector<ServedConversations> rows;  // [variants]
};

// Throws InputError for what cannot be served.
[[nodiscard]] ConversationAnswer serve_conversations(const ConversationQuestion& question,
                                                     const engine::BenchProgress& progress);

}  // namespace dculab::study
