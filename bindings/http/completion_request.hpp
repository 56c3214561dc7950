// The body of a request to /v1/completions or /v1/chat/completions, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "engine/chat/chat_template.hpp"

namespace dculab::http {

enum class Endpoint : std::uint8_t { completions, chat };

struct CompletionRequest {
  Endpoint endpoint = Endpoint::completions;
  std::string model{};  // empty: not named
  // Of completions one of the two, of chat the messages.
  std::string prompt{};
  std::optional<std::vector<TokenId>> prompt_token_ids{};
  std::vector<engine::ChatMessage> messages{};

  std::optional<int> max_tokens{};  // absent: 16, of a chat what the context has room for
  // Absent: the model's generation_config.json decides; of the seed chance.
  std::optional<double> temperature{}, top_p{};
  std::optional<int> top_k{};
  std::optional<std::uint64_t> seed{};
  std::vector<std::string> stop{};
  std::vector<TokenId> stop_token_ids{};
  bool ignore_eos = false;
  bool includes_stop = false;  // vLLM's include_stop_str_in_output
  bool shows_special_tokens = false;
  bool stream = false, include_usage = false;
};

// Throws ApiError with status 400 for what is not JSON, and for a parameter that is wrong, unknown, or does what the
// engine cannot; it names the parameter. One that changes nothing (null, or its default) is taken.
[[nodiscard]] CompletionRequest parse_completion_request(Endpoint endpoint, std::string_view body);

}  // namespace dculab::http
