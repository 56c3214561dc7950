// The requests of a serving benchmark that conversations make, and their lengths by a model's own tokenizer. A library
// of its own: it needs a tokenizer and no other part of the engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/conversations_file.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "study/scenario/request_workload.hpp"

namespace dculab::study {

// Which are left out: those vLLM's benchmark_serving leaves out (source: vllm, benchmarks/benchmark_serving.py,
// sample_sharegpt_requests), and those longer than the model's context.
struct ConversationLimits {
  int least_tokens = 4;  // of the prompt, and of the answer
  int most_prompt_tokens = 1024;
  int most_tokens = 2048;           // prompt and answer together
  int max_position_embeddings = 0;  // the same, of the model
};

struct SampledConversation {
  std::string prompt;
  int prompt_tokens = 0;  // with special tokens
  int answer_tokens = 0;
};

// In random order, `num_prompts` at most. Without a tokenizer 4 bytes are taken for a token.
[[nodiscard]] std::vector<SampledConversation> sample_conversations(std::span<const config::Exchange> conversations,
                                                                    const engine::Tokenizer* tokenizer,
                                                                    const ConversationLimits& limits, int num_prompts,
                                                                    std::uint64_t seed);

// Throws InputError where no conversation was sampled: all are too short, or too long for the model.
void require_some(const std::vector<SampledConversation>& sampled, const std::string& file);

// For count_conversations_with(). Throws InputError.
[[nodiscard]] std::vector<RecordedRequest> conversation_lengths(const ConversationRequests& asked);

}  // namespace dculab::study
