// From conversations to the requests of a serving benchmark.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/generator.hpp"

namespace dculab::engine {

// What was asked, and an answer whose length a request generates.
struct AnsweredPrompt {
  std::string prompt;
  std::string answer;
};

// Which are left out: those vLLM's benchmark_serving leaves out (source: vllm, benchmarks/benchmark_serving.py,
// sample_sharegpt_requests), and those longer than the model's context.
struct ConversationLimits {
  int least_tokens = 4;  // of the prompt, and of the answer
  int most_prompt_tokens = 1024;
  int most_tokens = 2048;           // prompt and answer together
  int max_position_embeddings = 0;  // the same, of the model
};

// In random order, `num_prompts` at most. Each request generates as many tokens as its answer has, whatever they are.
[[nodiscard]] std::vector<TextRequest> sample_requests(std::span<const AnsweredPrompt> conversations,
                                                       const Tokenizer& tokenizer, const ConversationLimits& limits,
                                                       int num_prompts, std::uint64_t seed);

}  // namespace dculab::engine
