#include "engine/generate/generator.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "engine/generate/engine_core.hpp"
#include "engine/generate/wall_clock.hpp"
#include "engine/tokenizer/pad_token.hpp"
#include "engine/tokenizer/stream_decoder.hpp"
#include "fields/utf8.hpp"

namespace dculab::engine {
namespace {

// Turns tokens into text as they come, one decoder per completion.
class TextCollector {
 public:
  TextCollector(const Tokenizer& tokenizer, std::size_t num_completions, const OnText& on_text)
      : completions_(num_completions),
        decoders_(num_completions, StreamDecoder(tokenizer, SpecialText::skip)),
        on_text_(on_text) {}

  // The last `count` of the sequence's tokens. One that stops it is no text.
  void add_tokens(const Sequence& sequence, int count) {
    const auto index = static_cast<std::size_t>(sequence.request.id);
    auto added = std::span(sequence.tokens).last(static_cast<std::size_t>(count));
    if (sequence.finish_reason == FinishReason::stop) added = added.first(added.size() - 1);
    for (const TokenId token : added) add_text(index, decoders_[index].push(token));
  }

  void finish(const Sequence& sequence) {
    const auto index = static_cast<std::size_t>(sequence.request.id);
    add_text(index, decoders_[index].finish());
    Completion& completion = completions_[index];
    completion.prompt_token_ids = sequence.request.prompt_token_ids;
    completion.token_ids.assign(sequence.generated().begin(), sequence.generated().end());
    completion.finish_reason = sequence.finish_reason;
  }

  void refuse(std::size_t index, const std::string& reason) { completions_[index].refusal = reason; }

  [[nodiscard]] std::vector<Completion> take() { return std::move(completions_); }

 private:
  void add_text(std::size_t index, const std::string& text) {
    if (text.empty()) return;
    completions_[index].text += text;
    if (on_text_) on_text_(index, text);
  }

  std::vector<Completion> completions_;
  std::vector<StreamDecoder> decoders_;
  const OnText& on_text_;
};

void require_samples(const TextRequest& request) {
  const auto found = problems(request.sampling);
  if (!found.empty()) throw InputError(found.front());
  if (request.n > 1 && request.sampling.temperature == 0)
    throw InputError(std::to_string(request.n) + " samples at temperature 0 would all be the same; raise it");
}

}  // namespace

GeneratorOptions options_for_folder(const std::filesystem::path& folder, const Tokenizer& tokenizer,
                                    GeneratorOptions options) {
  options.engine.kv_skip = with_pad_token(options.engine.kv_skip, folder, tokenizer);
  if (options.engine.speculative_config.method == SpeculativeMethod::mtp) options.speculative_model = folder;
  return options;
}

Generator::Generator(const std::filesystem::path& folder, const GeneratorOptions& options)
    : Generator(folder, load_weights(folder, options.weight_memory), options) {}

Generator::Generator(const std::filesystem::path& folder, ModelWeights weights, const GeneratorOptions& options)
    : tokenizer_(Tokenizer::load(folder / "tokenizer.json")), defaults_(read_generation_config(folder)) {
  const GeneratorOptions asked = options_for_folder(folder, tokenizer_, options);
  options_ = served_options(asked, weights.shape);
  model_ = open_model(std::move(weights), options_, asked);
  if (!options.speculative_model.empty()) require_same_tokens(folder, options.speculative_model);
  model_.executor->set_op_timing(OpTiming::off);
}

EngineOptions Generator::undrafted_options() const {
  EngineOptions options = options_;
  options.speculative_config = {};
  return options;
}

Request Generator::to_request(const TextRequest& request, std::size_t first_completion) const {
  Request result{.id = static_cast<SequenceId>(first_completion),
                 .prompt_token_ids = tokenizer_.encode(request.prompt, SpecialTokens::add),
                 .max_tokens = request.max_tokens,
                 .n = request.n,
                 .sampling = request.sampling,
                 .stop_tokens = defaults_.eos_token_ids,
                 .eos = request.eos,
                 .arrival = {}};
  if (options_.kv_skip.padding) take_out_padding(result, *options_.kv_skip.pad_token_id);
  return result;
}

std::optional<std::string> Generator::submit(const TextRequest& request, std::size_t first_completion,
                                             ServingLoop& loop) const {
  if (const std::size_t valid = valid_prefix(request.prompt); valid != request.prompt.size())
    return "the prompt is not UTF-8 from byte " + std::to_string(valid + 1) + " on; convert it (iconv -t UTF-8)";
  try {
    return loop.submit(to_request(request, first_completion));
  } catch (const InputError& error) {  // a text that the tokenizer gives up on
    return error.what();
  }
}

Generation Generator::generate(std::span<const TextRequest> requests, const OnText& on_text, WhenRefused when_refused) {
  std::for_each(requests.begin(), requests.end(), require_samples);
  const EngineOptions options = drafting_ == Drafting::on ? options_ : undrafted_options();
  WallClock clock;
  std::size_t num_completions = 0;
  for (const TextRequest& request : requests) num_completions += static_cast<std::size_t>(std::max(1, request.n));
  TextCollector collector(tokenizer_, num_completions, on_text);
  EngineCore core(model_, options, clock, RequestRecords::keep,
                  {.on_tokens = [&](const Sequence& sequence, int count) { collector.add_tokens(sequence, count); },
                   .on_finished = [&](const Sequence& sequence) { collector.finish(sequence); }});
  std::size_t completion = 0;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const std::size_t end = completion + static_cast<std::size_t>(requests[index].n);
    const auto reason = submit(requests[index], completion, core.loop());
    if (reason && when_refused == WhenRefused::end_all)
      throw InputError(requests.size() == 1 ? *reason : "prompt " + std::to_string(index + 1) + ": " + *reason);
    for (; completion < end; ++completion)
      if (reason) collector.refuse(completion, *reason);
  }
  core.loop().run();
  return {.completions = collector.take(), .report = core.loop().report()};
}

}  // namespace dculab::engine
