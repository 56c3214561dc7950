#include "bindings/http/completion_service.hpp"

#include <algorithm>
#include <utility>

#include "bindings/http/api_error.hpp"
#include "core/error.hpp"
#include "engine/sampling/sampler.hpp"
#include "fields/printable_text.hpp"

namespace dculab::http {
namespace {

constexpr int kDefaultTokens = 16;  // OpenAI's, of completions

[[nodiscard]] std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

[[nodiscard]] const char* prompt_param(const CompletionRequest& asked) {
  return asked.endpoint == Endpoint::chat ? "messages" : "prompt";
}

[[nodiscard]] std::vector<TokenId> given_ids(const std::vector<TokenId>& ids, const ServedModel& model) {
  const auto is_token = [&model](TokenId id) { return id >= 0 && id < model.vocab_size; };
  if (const auto bad = std::ranges::find_if_not(ids, is_token); bad != ids.end())
    throw bad_parameter(
        "prompt", std::to_string(*bad) + " is no token of the model, which has " + std::to_string(model.vocab_size));
  return ids;
}

[[nodiscard]] std::vector<TokenId> prompt_tokens(const CompletionRequest& asked, const ServedModel& model) {
  if (asked.prompt_token_ids) return given_ids(*asked.prompt_token_ids, model);
  const bool is_chat = asked.endpoint == Endpoint::chat;
  if (is_chat && !model.chat) throw ApiError(400, model.no_chat, "messages", "no_chat_template");
  try {
    // A template writes the special tokens itself.
    if (is_chat) return model.tokenizer.encode(model.chat->prompt(asked.messages), engine::SpecialTokens::omit);
    return model.tokenizer.encode(asked.prompt, engine::SpecialTokens::add);
  } catch (const InputError& error) {
    throw bad_parameter(prompt_param(asked), error.what());
  }
}

[[nodiscard]] int tokens_to_generate(const CompletionRequest& asked, const ServedModel& model, int prompt) {
  const int room = model.max_model_len - prompt;
  const std::string context = "the model's context is " + std::to_string(model.max_model_len) + " tokens, and ";
  if (room < 1)
    throw ApiError(400, context + "the prompt has " + std::to_string(prompt), prompt_param(asked),
                   "context_length_exceeded");
  if (!asked.max_tokens) return asked.endpoint == Endpoint::chat ? room : std::min(kDefaultTokens, room);
  if (*asked.max_tokens > room)
    throw ApiError(
        400,
        context + "the prompt has " + std::to_string(prompt) + " with max_tokens " + std::to_string(*asked.max_tokens),
        "max_tokens", "context_length_exceeded");
  return *asked.max_tokens;
}

[[nodiscard]] SamplingParams sampling_of(const CompletionRequest& asked, const SamplingParams& defaults,
                                         std::uint64_t chance_seed) {
  return {.temperature = asked.temperature.value_or(defaults.temperature),
          .top_k = asked.top_k.value_or(defaults.top_k),
          .top_p = asked.top_p.value_or(defaults.top_p),
          .seed = asked.seed.value_or(chance_seed)};
}

}  // namespace

Request engine_request(const CompletionRequest& asked, const ServedModel& model, std::uint64_t chance_seed) {
  if (!asked.model.empty() && asked.model != model.name)
    throw ApiError(404, "the model " + in_quotes(asked.model) + " is not served here; " + in_quotes(model.name) + " is",
                   "model", "model_not_found");
  Request request;
  request.prompt_token_ids = prompt_tokens(asked, model);
  if (request.prompt_token_ids.empty()) throw bad_parameter(prompt_param(asked), "has no tokens");
  request.max_tokens = tokens_to_generate(asked, model, static_cast<int>(request.prompt_token_ids.size()));
  request.sampling = sampling_of(asked, model.defaults.sampling, chance_seed);
  if (const auto found = engine::problems(request.sampling); !found.empty()) throw ApiError(400, found.front());
  if (!asked.ignore_eos) request.stop_tokens = model.defaults.eos_token_ids;
  request.stop_tokens.insert(request.stop_tokens.end(), asked.stop_token_ids.begin(), asked.stop_token_ids.end());
  return request;
}

Answer::Answer(const CompletionRequest& asked, const ServedModel& model, int prompt_tokens,
               std::shared_ptr<engine::TokenStream> stream, engine::AsyncEngine& engine, ServerMetrics& metrics,
               std::uint64_t number)
    : endpoint_(asked.endpoint),
      id_((asked.endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-") + std::to_string(number)),
      model_(model.name),
      created_(unix_time()),
      prompt_tokens_(prompt_tokens),
      text_(model.tokenizer, asked.shows_special_tokens ? engine::SpecialText::show : engine::SpecialText::skip,
            {.strings = asked.stop, .are_shown = asked.includes_stop}),
      stream_(std::move(stream)),
      engine_(engine),
      metrics_(metrics) {}

Answer::~Answer() {
  if (has_ended_) return;
  engine_.abort(*stream_);
  metrics_.finished("abort", Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count()),
                    prompt_tokens_, tokens_);
}

AnswerPiece Answer::next(std::chrono::milliseconds most) {
  const engine::StreamNews news = stream_->wait(most);
  if (news.has_ended && news.finish_reason == FinishReason::none)
    throw ApiError(engine_.thrown() ? 500 : 503, news.failure);
  if (!news.tokens.empty()) cached_tokens_ = news.num_cached_tokens;
  AnswerPiece piece = text_.add(news);
  tokens_ += piece.tokens;
  if (piece.finish_reason) {
    if (!news.has_ended) engine_.abort(*stream_);  // a stop string: the engine knows nothing of it
    finish(*piece.finish_reason);
  }
  return piece;
}

void Answer::finish(const std::string& reason) {
  has_ended_ = true;
  metrics_.finished(reason, Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count()),
                    prompt_tokens_, tokens_);
}

template <class Choice>
CompletionDocument<Choice> Answer::document() const {
  return {.id = id_, .object = {}, .created = created_, .model = model_, .choices = {}, .usage = {}};
}

std::string Answer::whole_json(const std::string& text, const std::string& finish_reason) const {
  if (endpoint_ == Endpoint::completions) {
    auto whole = document<TextChoice>();
    whole.object = "text_completion";
    whole.choices = {{.text = text, .finish_reason = finish_reason}};
    whole.usage = usage();
    return text_of(whole);
  }
  auto whole = document<MessageChoice>();
  whole.object = "chat.completion";
  whole.choices = {{.message = {.role = "assistant", .content = text}, .finish_reason = finish_reason}};
  whole.usage = usage();
  return text_of(whole);
}

std::string Answer::piece_json(const AnswerPiece& piece) {
  const bool is_first = !std::exchange(has_begun_, true);
  if (endpoint_ == Endpoint::completions) {
    auto part = document<TextChoice>();
    part.object = "text_completion";
    part.choices = {{.text = piece.text, .finish_reason = piece.finish_reason}};
    return text_of(part);
  }
  auto part = document<MessageChoice>();
  part.object = "chat.completion.chunk";
  part.choices = {
      {.message = {.role = {}, .content = piece.text}, .is_piece = true, .finish_reason = piece.finish_reason}};
  if (is_first) part.choices.front().message.role = "assistant";
  return text_of(part);
}

std::string Answer::usage_json() const {
  auto last = document<TextChoice>();  // without a choice it is the same for both
  last.object = endpoint_ == Endpoint::chat ? "chat.completion.chunk" : "text_completion";
  last.usage = usage();
  return text_of(last);
}

std::unique_ptr<Answer> CompletionService::begin(const CompletionRequest& asked) {
  const std::uint64_t number = next_number_++;
  Request request = engine_request(asked, model_, chance_ + number);
  if (const auto reason = engine_.refusal(request))
    throw ApiError(400, *reason, prompt_param(asked), "context_length_exceeded");
  const int prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  std::shared_ptr<engine::TokenStream> stream = engine_.submit(std::move(request));
  if (!stream)
    throw ApiError(
        503, "the server holds " + std::to_string(engine_.most_requests()) + " requests already; try again later");
  return std::make_unique<Answer>(asked, model_, prompt_tokens, std::move(stream), engine_, metrics_, number);
}

}  // namespace dculab::http
