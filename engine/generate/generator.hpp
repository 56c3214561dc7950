// Prompts in, text out: a model folder, its tokenizer, the scheduler and an executor put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/serving_loop.hpp"
#include "engine/generate/open_model.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "model/folder/model_config.hpp"

namespace dculab::engine {

struct TextRequest {
  std::string prompt;
  int max_tokens = 16;
  SamplingParams sampling{};
  EosHandling eos = EosHandling::stop;
  int n = 1;  // samples: texts that follow the prompt
};

struct Completion {
  std::vector<TokenId> prompt_token_ids;
  std::vector<TokenId> token_ids;  // the stop token included
  std::string text;                // special tokens left out
  FinishReason finish_reason = FinishReason::none;
  std::string refusal;  // why the request can never be served; empty when it was
};

// Whether a request that can never be served, such as a prompt longer than the context, ends all requests or itself.
enum class WhenRefused : std::uint8_t { end_all, end_itself };

enum class Drafting : std::uint8_t { off, on };

struct Generation {
  std::vector<Completion> completions;  // in the order of the requests, a request's samples one after the other
  ServingReport report;
};

// Called with text that is certain (whole characters) as soon as it is.
using OnText = std::function<void(std::size_t completion_index, std::string_view text)>;

// The same with what the model's folder says: its pad token, where padding is skipped, and its own MTP layer.
[[nodiscard]] GeneratorOptions options_for_folder(const std::filesystem::path& folder, const Tokenizer& tokenizer,
                                                  GeneratorOptions options);

class Generator {
 public:
  // Loads config.json, weights, tokenizer.json and generation_config.json of `folder`. Throws InputError.
  Generator(const std::filesystem::path& folder, const GeneratorOptions& options);

  // The same with weights that are loaded already.
  Generator(const std::filesystem::path& folder, ModelWeights weights, const GeneratorOptions& options);

  // Whether tokens are drafted, of a generator whose options ask for it. Default: on.
  void set_drafting(Drafting drafting) { drafting_ = drafting; }

  // Serves all requests together, continuously batched. What each one gets does not depend on the others.
  // Throws InputError before anything runs: for sampling parameters that make no sense, and for a request that can
  // never be served unless that ends only the request itself.
  [[nodiscard]] Generation generate(std::span<const TextRequest> requests, const OnText& on_text = {},
                                    WhenRefused when_refused = WhenRefused::end_all);

  [[nodiscard]] const GenerationConfig& defaults() const { return defaults_; }
  [[nodiscard]] const ModelShape& shape() const { return model_.executor->shape(); }
  [[nodiscard]] const ModelExecutor& executor() const { return *model_.executor; }
  [[nodiscard]] ModelExecutor& executor() { return *model_.executor; }  // for whoever runs steps of their own
  [[nodiscard]] const EngineOptions& engine_options() const { return options_; }
  // The same for steps of the model alone.
  [[nodiscard]] EngineOptions undrafted_options() const;
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  [[nodiscard]] Request to_request(const TextRequest& request, std::size_t first_completion) const;
  // Why the request can never be served; nothing when it will be.
  [[nodiscard]] std::optional<std::string> submit(const TextRequest& request, std::size_t first_completion,
                                                  ServingLoop& loop) const;

  Tokenizer tokenizer_;
  GenerationConfig defaults_;
  EngineOptions options_;
  OpenModel model_;
  Drafting drafting_ = Drafting::on;
};

}  // namespace dculab::engine
