#include "bindings/http/completion_request.hpp"

#include <algorithm>
#include <limits>

#include "bindings/http/request_body.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"

namespace dculab::http {
namespace {

constexpr std::size_t kMostStops = 16;  // strings, at most as long as kLongestStop bytes
constexpr std::size_t kLongestStop = 1024;

// A string, token ids, or a list with one of them.
void read_prompt(RequestBody& body, CompletionRequest& request) {
  const Node* prompt = body.member("prompt");
  if (prompt == nullptr) throw bad_parameter("prompt", "is missing");
  const auto is_nested = [](const Node& list) {
    return !list.children.empty() &&
           (list.children.front().kind == NodeKind::list || list.children.front().is(ScalarType::text));
  };
  if (prompt->kind == NodeKind::list && is_nested(*prompt)) {
    if (prompt->children.size() > 1)
      throw bad_parameter("prompt", "one prompt a request is served; send several requests");
    prompt = &prompt->children.front();
  }
  if (prompt->is(ScalarType::text)) {
    request.prompt = prompt->text;
  } else if (prompt->kind == NodeKind::list) {
    request.prompt_token_ids = token_ids_of(*prompt, "prompt");
  } else {
    throw bad_parameter("prompt", "must be a string or a list of token ids");
  }
}

// A string, or [{"type": "text", "text": ...}, ...], whose texts are put on lines of their own.
[[nodiscard]] std::string content_of(const Node& content) {
  if (content.is(ScalarType::text)) return content.text;
  if (content.kind != NodeKind::list) throw bad_parameter("messages", "content must be a string or a list of texts");
  std::string text;
  for (const Node& part : content.children) {
    const Node *type = part.find("type"), *value = part.find("text");
    if (part.kind != NodeKind::map || type == nullptr || type->text != "text" || value == nullptr ||
        !value->is(ScalarType::text))
      throw bad_parameter("messages", "parts of a content must be of type text");
    if (&part != &content.children.front()) text += '\n';
    text += value->text;
  }
  return text;
}

// Refuses a member of a message unless it is known, or has nothing in it.
void require_served(const Node& member) {
  const bool is_known = member.key == "role" || member.key == "content" || member.key == "name";
  const bool is_empty = member.kind == NodeKind::null || (member.kind != NodeKind::scalar && member.children.empty());
  if (!is_known && !is_empty) throw bad_parameter("messages", in_quotes(member.key) + " is not served");
}

void read_messages(RequestBody& body, CompletionRequest& request) {
  const Node* messages = body.member("messages");
  if (messages == nullptr || messages->kind != NodeKind::list || messages->children.empty())
    throw bad_parameter("messages", "must be a list with a message at least");
  for (const Node& each : messages->children) {
    if (each.kind != NodeKind::map) throw bad_parameter("messages", "each must be an object");
    const Node *role = each.find("role"), *content = each.find("content");
    if (role == nullptr || !role->is(ScalarType::text)) throw bad_parameter("messages", "each needs a role");
    for (const Node& member : each.children) require_served(member);
    // An assistant's may be null, as OpenAI's clients send back what has none.
    const bool has_content = content != nullptr && content->kind != NodeKind::null;
    if (!has_content && role->text != "assistant") throw bad_parameter("messages", "each needs a content");
    request.messages.push_back({.role = role->text, .content = has_content ? content_of(*content) : ""});
  }
}

void read_stop(RequestBody& body, CompletionRequest& request) {
  if (const Node* stop = body.member("stop")) {
    if (stop->is(ScalarType::text)) request.stop.push_back(stop->text);
    if (!stop->is(ScalarType::text) && stop->kind != NodeKind::list)
      throw bad_parameter("stop", "must be a string or a list of strings");
    for (const Node& each : stop->children) {
      if (!each.is(ScalarType::text)) throw bad_parameter("stop", "must be a string or a list of strings");
      request.stop.push_back(each.text);
    }
  }
  const auto is_bad = [](const std::string& each) { return each.empty() || each.size() > kLongestStop; };
  if (request.stop.size() > kMostStops || std::ranges::any_of(request.stop, is_bad))
    throw bad_parameter(
        "stop", "takes " + std::to_string(kMostStops) + " strings of 1 to " + std::to_string(kLongestStop) + " bytes");
  if (const Node* ids = body.member("stop_token_ids")) {
    if (ids->kind != NodeKind::list) throw bad_parameter("stop_token_ids", "must be a list of token ids");
    request.stop_token_ids = token_ids_of(*ids, "stop_token_ids");
    if (request.stop_token_ids.size() > 1000) throw bad_parameter("stop_token_ids", "takes 1000 token ids at most");
  }
}

void read_sampling(RequestBody& body, CompletionRequest& request) {
  request.temperature = body.number("temperature", 0, 100);
  request.top_p = body.number("top_p", 0, 1);
  if (request.top_p && *request.top_p == 0) throw bad_parameter("top_p", "must be greater than 0");
  if (const auto top_k = body.integer("top_k", -1, 1 << 30)) request.top_k = std::max<int>(0, static_cast<int>(*top_k));
  if (const auto seed =
          body.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()))
    request.seed = static_cast<std::uint64_t>(*seed);
  request.ignore_eos = body.flag("ignore_eos", false);
  request.includes_stop = body.flag("include_stop_str_in_output", false);
  request.shows_special_tokens = !body.flag("skip_special_tokens", true);
}

void read_length(RequestBody& body, CompletionRequest& request) {
  for (const char* key : {"max_tokens", "max_completion_tokens"})
    if (const auto tokens = body.integer(key, 1, kLongestContext)) request.max_tokens = static_cast<int>(*tokens);
}

void read_stream(RequestBody& body, CompletionRequest& request) {
  request.stream = body.flag("stream", false);
  const Node* options = body.member("stream_options");
  if (options == nullptr) return;
  if (options->kind != NodeKind::map) throw bad_parameter("stream_options", "must be an object");
  if (!request.stream) throw bad_parameter("stream_options", "goes with stream = true");
  for (const Node& option : options->children) {
    if (!option.is(ScalarType::flag)) throw bad_parameter("stream_options", option.key + " must be true or false");
    if (option.key == "include_usage")
      request.include_usage = option.text == "true";
    else if (option.text == "true")
      throw bad_parameter("stream_options", "include_usage is known, " + option.key + " is not");
  }
}

// What only its default can be had of.
void refuse_unserved(RequestBody& body, Endpoint endpoint) {
  const auto refuse = [&](const char* key, const char* neutral, const char* why) {
    body.must_be_neutral(key, neutral, why);
  };
  refuse("n", "1", "one answer a request is served");
  refuse("best_of", "1", "one answer a request is served");
  refuse("logprobs", "false", "log probabilities are not served");
  refuse("top_logprobs", "0", "log probabilities are not served");
  refuse("prompt_logprobs", "", "log probabilities are not served");
  refuse("presence_penalty", "0", "penalties are not served");
  refuse("frequency_penalty", "0", "penalties are not served");
  refuse("repetition_penalty", "1", "penalties are not served");
  refuse("length_penalty", "1", "penalties are not served");
  refuse("logit_bias", "", "is not served");
  refuse("min_p", "0", "is not served");
  refuse("min_tokens", "0", "is not served; ignore_eos makes answers of exactly max_tokens");
  refuse("use_beam_search", "false", "is not served");
  refuse("echo", "false", "is not served");
  refuse("suffix", "", "is not served");
  refuse("tools", "", "tools are not served");
  refuse("functions", "", "tools are not served");
  if (const Node* choice = body.member("tool_choice"); choice != nullptr && choice->text != "auto")
    refuse("tool_choice", "none", "tools are not served");
  refuse("modalities", "", "text alone is served");
  if (const Node* format = body.member("response_format")) {
    const Node* type = format->find("type");
    if (type == nullptr || type->text != "text") throw bad_parameter("response_format", "text alone is served");
  }
  for (const char* key : {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
                          "request_id", "parallel_tool_calls"})
    body.ignore(key);
  if (endpoint == Endpoint::chat) refuse("add_generation_prompt", "true", "an answer always follows");
}

}  // namespace

CompletionRequest parse_completion_request(Endpoint endpoint, std::string_view text) {
  RequestBody body(text);
  CompletionRequest request{.endpoint = endpoint};
  request.model = body.text("model").value_or("");
  if (endpoint == Endpoint::completions)
    read_prompt(body, request);
  else
    read_messages(body, request);
  read_length(body, request);
  read_sampling(body, request);
  read_stop(body, request);
  read_stream(body, request);
  refuse_unserved(body, endpoint);
  body.refuse_others();
  return request;
}

}  // namespace dculab::http
