// Bodies of requests to `dculab serve`, at both of its endpoints.
#include <algorithm>

#include "bindings/http/api_error.hpp"
#include "bindings/http/completion_request.hpp"
#include "fields/utf8.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

void require_served(const http::CompletionRequest& request) {
  const auto is_utf8 = [](const std::string& text) { return valid_prefix(text) == text.size(); };
  const auto is_token = [](TokenId id) { return id >= 0; };
  require(is_utf8(request.model) && is_utf8(request.prompt), "what is served is UTF-8");
  require(std::ranges::all_of(request.stop, [&](const std::string& stop) { return !stop.empty() && is_utf8(stop); }),
          "a stop has letters");
  for (const engine::ChatMessage& message : request.messages)
    require(is_utf8(message.role) && is_utf8(message.content), "a message is UTF-8");
  if (request.prompt_token_ids)
    require(std::ranges::all_of(*request.prompt_token_ids, is_token), "ids are not negative");
  require(request.max_tokens.value_or(1) >= 1, "an answer has tokens");
  require(request.temperature.value_or(0) >= 0, "a temperature is not negative, and a number");
  require(request.top_p.value_or(1) > 0 && request.top_p.value_or(1) <= 1, "top_p is a probability");
  require(request.top_k.value_or(0) >= 0, "top_k is a count");
  require(request.stream || !request.include_usage, "usage is streamed");
}

}  // namespace

void read_completion_request(std::string_view input) {
  bool served = false;
  std::string refusal;
  for (const http::Endpoint endpoint : {http::Endpoint::completions, http::Endpoint::chat}) {
    try {
      require_served(http::parse_completion_request(endpoint, input));
      served = true;
    } catch (const http::ApiError& error) {
      require(error.status() == 400 && *error.what() != '\0', "a refusal is 400 and says why");
      refusal = error.what();
    }
  }
  if (!served) throw InputError("request", refusal);
}

}  // namespace dculab::fuzz
