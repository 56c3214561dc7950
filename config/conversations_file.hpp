// Conversations in ShareGPT's format, as benchmarks of LLM servers take them.
//
//   [{"id": "...", "conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}, ...]}, ...]
//
// Format: ShareGPT_V3_unfiltered_cleaned_split.json, as read by vLLM's benchmarks.
#pragma once

#include <string>
#include <vector>

namespace dculab::config {

// What a user asked and what was answered.
struct Exchange {
  std::string id;  // of the conversation
  std::string prompt;
  std::string answer;
};

// The first turn of a human that a model answers, of each conversation that has one. Turns are "human" or "user", and
// "gpt", "chatgpt", "bing", "bard" or "assistant". Nothing else of the file is kept. Throws InputError.
[[nodiscard]] std::vector<Exchange> read_conversations(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<Exchange> read_conversations_file(const std::string& path);

}  // namespace dculab::config
