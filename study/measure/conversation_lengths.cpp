#include "study/measure/conversation_lengths.hpp"

#include <utility>

#include "config/conversations_file.hpp"
#include "engine/measure/conversation_requests.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace dculab::study {

std::vector<RecordedRequest> conversation_lengths(const ConversationRequests& asked) {
  std::vector<engine::AnsweredPrompt> conversations;
  for (config::Exchange& exchange : config::read_conversations_file(asked.file))
    conversations.push_back({.prompt = std::move(exchange.prompt), .answer = std::move(exchange.answer)});
  const engine::Tokenizer counter = engine::Tokenizer::load(asked.tokenizer);
  std::vector<RecordedRequest> lengths;
  for (const engine::TextRequest& request :
       engine::sample_requests(conversations, counter, {.max_position_embeddings = asked.max_position_embeddings},
                               asked.requests, asked.seed))
    lengths.push_back(
        {{}, static_cast<int>(counter.encode(request.prompt, engine::SpecialTokens::add).size()), request.max_tokens});
  return lengths;
}

}  // namespace dculab::study
