#include "engine/measure/conversation_requests.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace dculab::engine {

std::vector<TextRequest> sample_requests(std::span<const AnsweredPrompt> conversations, const Tokenizer& tokenizer,
                                         const ConversationLimits& limits, int num_prompts, std::uint64_t seed) {
  std::vector<std::size_t> order(conversations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  const int longest = std::min(limits.most_tokens, limits.max_position_embeddings);
  std::vector<TextRequest> requests;
  for (const std::size_t index : order) {
    if (static_cast<int>(requests.size()) == num_prompts) break;
    const AnsweredPrompt& each = conversations[index];
    const auto prompt_tokens = static_cast<int>(tokenizer.encode(each.prompt, SpecialTokens::add).size());
    const auto answer_tokens = static_cast<int>(tokenizer.encode(each.answer, SpecialTokens::omit).size());
    if (prompt_tokens < limits.least_tokens || answer_tokens < limits.least_tokens) continue;
    if (prompt_tokens > limits.most_prompt_tokens || prompt_tokens + answer_tokens > longest) continue;
    requests.push_back({.prompt = each.prompt, .max_tokens = answer_tokens, .eos = EosHandling::ignore});
  }
  return requests;
}

}  // namespace dculab::engine
