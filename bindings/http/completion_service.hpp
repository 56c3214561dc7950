// What a server does with a request, whatever brought it: checks it, has it tokenized and served, and hands its text
// over piece by piece.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "bindings/http/answer_text.hpp"
#include "bindings/http/completion_request.hpp"
#include "bindings/http/openai_fields.hpp"
#include "bindings/http/server_metrics.hpp"
#include "engine/chat/chat_template.hpp"
#include "engine/generate/async_engine.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "model/folder/model_config.hpp"

namespace dculab::http {

// The model as clients see it.
struct ServedModel {
  std::string name;
  engine::Tokenizer tokenizer;
  GenerationConfig defaults;
  int max_model_len = 0, vocab_size = 0;
  std::optional<engine::ChatTemplate> chat{};
  std::string no_chat{};  // why there is no chat
};

// The tokens that a request asks for. Throws ApiError: 404 for another model; 400 for a prompt that is empty, has ids
// that are no tokens, or is longer than the context with max_tokens; and for a chat without a template.
[[nodiscard]] Request engine_request(const CompletionRequest& asked, const ServedModel& model,
                                     std::uint64_t chance_seed);

// A request that is being served. Destroyed before its end, it is aborted.
class Answer {
 public:
  Answer(const CompletionRequest& asked, const ServedModel& model, int prompt_tokens,
         std::shared_ptr<engine::TokenStream> stream, engine::AsyncEngine& engine, ServerMetrics& metrics,
         std::uint64_t number);
  ~Answer();
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // Waits for text, at most so long. Throws ApiError where the engine has stopped: with status 500 where it failed,
  // with 503 where it was told to.
  [[nodiscard]] AnswerPiece next(std::chrono::milliseconds most);
  [[nodiscard]] bool has_ended() const { return has_ended_; }

  [[nodiscard]] Usage usage() const { return {prompt_tokens_, tokens_, cached_tokens_}; }

  // OpenAI's JSON: all of it, a piece of it (the first one has the role), and the usage behind the pieces.
  [[nodiscard]] std::string whole_json(const std::string& text, const std::string& finish_reason) const;
  [[nodiscard]] std::string piece_json(const AnswerPiece& piece);
  [[nodiscard]] std::string usage_json() const;

 private:
  template <class Choice>
  [[nodiscard]] CompletionDocument<Choice> document() const;
  void finish(const std::string& reason);

  Endpoint endpoint_;
  std::string id_, model_;
  std::int64_t created_;
  int prompt_tokens_, tokens_ = 0, cached_tokens_ = 0;
  bool has_ended_ = false, has_begun_ = false;
  AnswerText text_;
  std::shared_ptr<engine::TokenStream> stream_;
  engine::AsyncEngine& engine_;
  ServerMetrics& metrics_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Any thread may call it.
class CompletionService {
 public:
  CompletionService(const ServedModel& model, engine::AsyncEngine& engine, ServerMetrics& metrics)
      : model_(model), engine_(engine), metrics_(metrics) {}

  // Throws ApiError: as engine_request(), 400 for what the KV cache can never hold, 503 where the queue is full.
  [[nodiscard]] std::unique_ptr<Answer> begin(const CompletionRequest& asked);

  [[nodiscard]] const ServedModel& model() const { return model_; }
  [[nodiscard]] ModelCard card() const { return {model_.name, started_, model_.max_model_len}; }
  [[nodiscard]] std::string metrics_text() const { return metrics_.text(engine_.state()); }

 private:
  const ServedModel& model_;
  engine::AsyncEngine& engine_;
  ServerMetrics& metrics_;
  std::int64_t started_ =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::uint64_t chance_ = std::random_device()();
  std::atomic<std::uint64_t> next_number_ = 0;
};

}  // namespace dculab::http
