#include "study/measure/conversation_lengths.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "core/error.hpp"

namespace dculab::study {
namespace {

// Without a tokenizer by length: English has about 4 bytes a token in today's vocabularies.
[[nodiscard]] int count_tokens(const engine::Tokenizer* tokenizer, const std::string& text,
                               engine::SpecialTokens special) {
  constexpr std::size_t kBytesPerToken = 4;
  if (tokenizer == nullptr) return static_cast<int>((text.size() + kBytesPerToken - 1) / kBytesPerToken);
  return static_cast<int>(tokenizer->encode(text, special).size());
}

}  // namespace

std::vector<SampledConversation> sample_conversations(std::span<const config::Exchange> conversations,
                                                      const engine::Tokenizer* tokenizer,
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
    const int prompt_tokens = count_tokens(tokenizer, each.prompt, engine::SpecialTokens::add);
    const int answer_tokens = count_tokens(tokenizer, each.answer, engine::SpecialTokens::omit);
    if (prompt_tokens < limits.least_tokens || answer_tokens < limits.least_tokens) continue;
    if (prompt_tokens > limits.most_prompt_tokens || prompt_tokens + answer_tokens > longest) continue;
    sampled.push_back({each.prompt, prompt_tokens, answer_tokens});
  }
  return sampled;
}

void require_some(const std::vector<SampledConversation>& sampled, const std::string& file) {
  if (sampled.empty())
    throw InputError(file,
                     "no conversation has a prompt and an answer of at least 4 tokens each that fit into the "
                     "model's context");
}

std::vector<RecordedRequest> conversation_lengths(const ConversationRequests& asked) {
  const std::vector<config::Exchange> conversations = config::read_conversations_file(asked.file);
  std::optional<engine::Tokenizer> tokenizer;
  if (!asked.tokenizer.empty()) tokenizer = engine::Tokenizer::load(asked.tokenizer);
  const ConversationLimits limits{.max_position_embeddings = asked.max_position_embeddings};
  const std::vector<SampledConversation> sampled =
      sample_conversations(conversations, tokenizer ? &*tokenizer : nullptr, limits, asked.requests, asked.seed);
  require_some(sampled, asked.file);
  std::vector<RecordedRequest> lengths;
  for (const SampledConversation& each : sampled) lengths.push_back({{}, each.prompt_tokens, each.answer_tokens});
  return lengths;
}

}  // namespace dculab::study
