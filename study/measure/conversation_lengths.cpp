#include "study/measure/conversation_lengths.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace dculab::study {

std::vector<SampledConversation> sample_conversations(std::span<const config::Exchange> conversations,
                                                      const engine::Tokenizer& tokenizer,
                                                      const ConversationLimits& limits, int num_prompts,
                                                      std::uint64_t seed) {
  std::vector<std::size_t> order(conversations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  const int longest = std::min(limits.most_tokens, limits.max_position_embeddings);
  std::vector<SampledConversation> sampled;
  for (const std::size_t index : order) {
    if (static_cast<int>(sampled.size()) == num_prompts) break;
    const config::Exchange& each = conversations[index];
    const auto prompt_tokens = static_cast<int>(tokenizer.encode(each.prompt, engine::SpecialTokens::add).size());
    const auto answer_tokens = static_cast<int>(tokenizer.encode(each.answer, engine::SpecialTokens::omit).size());
    if (prompt_tokens < limits.least_tokens || answer_tokens < limits.least_tokens) continue;
    if (prompt_tokens > limits.most_prompt_tokens || prompt_tokens + answer_tokens > longest) continue;
    sampled.push_back({each.prompt, prompt_tokens, answer_tokens});
  }
  return sampled;
}

std::vector<RecordedRequest> conversation_lengths(const ConversationRequests& asked) {
  const std::vector<config::Exchange> conversations = config::read_conversations_file(asked.file);
  const engine::Tokenizer tokenizer = engine::Tokenizer::load(asked.tokenizer);
  const ConversationLimits limits{.max_position_embeddings = asked.max_position_embeddings};
  std::vector<RecordedRequest> lengths;
  for (const SampledConversation& each :
       sample_conversations(conversations, tokenizer, limits, asked.requests, asked.seed))
    lengths.push_back({{}, each.prompt_tokens, each.answer_tokens});
  return lengths;
}

}  // namespace dculab::study
