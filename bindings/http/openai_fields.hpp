// The fields of OpenAI's answers, as clients of vLLM expect them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fields/field_list.hpp"
#include "present/output/field_json.hpp"

namespace dculab::http {

struct ErrorBody {
  std::string message, type;
  std::optional<std::string> param, code;
};

struct ErrorDocument {
  ErrorBody error;
};

struct Usage {
  int prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

struct CachedTokens {
  int cached_tokens = 0;
};

// Of /v1/completions, whole or a piece of a stream.
struct TextChoice {
  std::string text;
  std::optional<std::string> finish_reason;
};

// Of /v1/chat/completions: a whole answer, or a piece.
struct Message {
  std::optional<std::string> role;
  std::string content;
};
struct MessageChoice {
  Message message;
  bool is_piece = false;
  std::optional<std::string> finish_reason;
};

template <class Choice>
struct CompletionDocument {
  std::string id, object;
  std::int64_t created = 0;  // Unix time
  std::string model;
  std::vector<Choice> choices;
  std::optional<Usage> usage;
};

struct ModelCard {
  std::string id;
  std::int64_t created = 0;
  int max_model_len = 0;
};
struct ModelList {
  std::vector<ModelCard> data;
};

struct VersionDocument {
  std::string version;
};

// On one line; text that is not UTF-8 is mended.
template <class T>
[[nodiscard]] std::string text_of(const T& document) {
  return present::json_of(document).dump(-1, ' ', false, present::Json::error_handler_t::replace);
}

}  // namespace dculab::http

namespace dculab {

template <>
struct FieldList<http::ErrorBody> {
  using Self = http::ErrorBody;
  static constexpr std::string_view id = "openai_error_body";
  static constexpr std::string_view doc = "What is wrong.";
  static constexpr auto fields =
      std::tuple(field("message", "in words", &Self::message), field("type", "its kind", &Self::type),
                 field("param", "the parameter", [](const Self& self) { return or_null(self.param); }),
                 field("code", "for programs", [](const Self& self) { return or_null(self.code); }));
};

template <>
struct FieldList<http::ErrorDocument> {
  static constexpr std::string_view id = "openai_error";
  static constexpr std::string_view doc = "A refusal.";
  static constexpr auto fields = std::tuple(field("error", "what is wrong", &http::ErrorDocument::error));
};

template <>
struct FieldList<http::CachedTokens> {
  static constexpr std::string_view id = "openai_prompt_tokens_details";
  static constexpr std::string_view doc = "Tokens of the prompt.";
  static constexpr auto fields =
      std::tuple(field("cached_tokens", "found by prefix caching", unit::tokens, &http::CachedTokens::cached_tokens));
};

template <>
struct FieldList<http::Usage> {
  using Self = http::Usage;
  static constexpr std::string_view id = "openai_usage";
  static constexpr std::string_view doc = "Tokens of a request.";
  static constexpr auto fields =
      std::tuple(field("prompt_tokens", "of the prompt", unit::tokens, &Self::prompt_tokens),
                 field("total_tokens", "of both", unit::tokens,
                       [](const Self& self) { return self.prompt_tokens + self.completion_tokens; }),
                 field("completion_tokens", "of the answer", unit::tokens, &Self::completion_tokens),
                 field("prompt_tokens_details", "of the prompt",
                       [](const Self& self) { return http::CachedTokens{self.cached_tokens}; }));
};

template <>
struct FieldList<http::TextChoice> {
  using Self = http::TextChoice;
  static constexpr std::string_view id = "openai_text_choice";
  static constexpr std::string_view doc = "A text.";
  static constexpr auto fields = std::tuple(
      field("index", "of the sample", [](const Self&) { return 0; }), field("text", "that follows", &Self::text),
      field("logprobs", "never there", [](const Self&) { return OrNull<int>{}; }),
      field("finish_reason", "what ended it", [](const Self& self) { return or_null(self.finish_reason); }));
};

template <>
struct FieldList<http::Message> {
  using Self = http::Message;
  static constexpr std::string_view id = "openai_message";
  static constexpr std::string_view doc = "What the assistant says.";
  static constexpr auto fields =
      std::tuple(field("role", "whose it is", &Self::role), field("content", "the text", &Self::content));
};

template <>
struct FieldList<http::MessageChoice> {
  using Self = http::MessageChoice;
  static constexpr std::string_view id = "openai_message_choice";
  static constexpr std::string_view doc = "An answer, or a piece of one.";
  static constexpr auto fields = std::tuple(
      field("index", "of the sample", [](const Self&) { return 0; }),
      field("message", "a whole answer",
            [](const Self& self) { return when(!self.is_piece, [&] { return self.message; }); }),
      field("delta", "a piece", [](const Self& self) { return when(self.is_piece, [&] { return self.message; }); }),
      field("logprobs", "never there", [](const Self&) { return OrNull<int>{}; }),
      field("finish_reason", "what ended it", [](const Self& self) { return or_null(self.finish_reason); }));
};

template <class Choice>
struct FieldList<http::CompletionDocument<Choice>> {
  using Self = http::CompletionDocument<Choice>;
  static constexpr std::string_view id = "openai_completion";
  static constexpr std::string_view doc = "What follows a prompt.";
  static constexpr auto fields =
      std::tuple(field("id", "of the request", &Self::id), field("object", "what this is", &Self::object),
                 field("created", "when", unit::seconds, &Self::created), field("model", "that answered", &Self::model),
                 field("choices", "one", &Self::choices), field("usage", "tokens", &Self::usage));
};

template <>
struct FieldList<http::ModelCard> {
  using Self = http::ModelCard;
  static constexpr std::string_view id = "openai_model";
  static constexpr std::string_view doc = "A model that is served.";
  static constexpr auto fields = std::tuple(
      field("id", "its name", &Self::id), field("object", "what this is", [](const Self&) { return "model"; }),
      field("created", "when", unit::seconds, &Self::created),
      field("owned_by", "who serves it", [](const Self&) { return "dculab"; }),
      field("max_model_len", "its longest context", unit::tokens, &Self::max_model_len));
};

template <>
struct FieldList<http::ModelList> {
  static constexpr std::string_view id = "openai_models";
  static constexpr std::string_view doc = "The models that are served.";
  static constexpr auto fields =
      std::tuple(field("object", "what this is", [](const http::ModelList&) { return "list"; }),
                 field("data", "one", &http::ModelList::data));
};

template <>
struct FieldList<http::VersionDocument> {
  static constexpr std::string_view id = "server_version";
  static constexpr std::string_view doc = "Of the server.";
  static constexpr auto fields = std::tuple(field("version", "dculab's", &http::VersionDocument::version));
};

}  // namespace dculab
