// The requests that a scenario's workload asks for, with the lengths that its file has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/workload.hpp"
#include "model/model_shape.hpp"

namespace dculab::study {

// The workload's file: beside the scenario, or where the program is run.
[[nodiscard]] std::string find_requests_file(const config::Scenario& scenario);

// `file` is a record of requests (config/request_trace_file.hpp) or ShareGPT's JSON, whose conversations are counted by
// the tokenizer of the scenario's model, or where it has none by their length: a token for every 4 bytes
// (counted_by_length). Throws InputError.
[[nodiscard]] RequestWorkload resolve_requests(const config::Scenario& scenario, const ModelShape& model);

// Whether a file holds conversations in ShareGPT's format, by its content; of one that is not there by its name.
[[nodiscard]] bool holds_conversations(const std::string& file);

// Whether the scenario's requests are conversations that are counted by their length, since its model has no tokenizer.
[[nodiscard]] bool counted_by_length(const config::Scenario& scenario);

// Requests from conversations.
struct ConversationRequests {
  std::filesystem::path tokenizer;  // of the model that serves them: tokenizer.json; empty: it has none
  std::string file;                 // of the conversations
  int max_position_embeddings = 0;  // of the model
  int requests = 0;                 // at most
  std::uint64_t seed = 0;           // of which are taken
};
using ConversationCounter = std::vector<RecordedRequest> (*)(const ConversationRequests& asked);

// What counts them from now on; a tokenizer is the engine's (study/measure/conversation_lengths.hpp). Null, as before
// the first call: conversations are refused. To be called before other threads resolve requests.
void count_conversations_with(ConversationCounter counter);

}  // namespace dculab::study
