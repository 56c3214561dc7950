#include "engine/generate/generator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "engine/generate/wall_clock.hpp"
#include "engine/sampling/sampler.hpp"
#include "engine/tokenizer/stream_decoder.hpp"

namespace dculab::engine {
namespace {

EngineOptions options_for(const GeneratorOptions& asked, const ModelShape& shape) {
  EngineOptions options = options_on(asked.device, asked.engine, shape);
  options.weights = shape.layer_format();
  if (options.activations == ActivationMode::int8 && !shape.quantization)
    throw InputError("8-bit activations need quantized weights, and those of " + shape.name + " are " +
                     std::string(name(shape.dtype)) + "; quantize the model first");
  if (const auto found = problems(options); !found.empty()) throw InputError(found.front());
  if (const auto found = problems(options, shape); !found.empty()) throw InputError(found.front());
  return options;
}

int thread_count(int wanted) {
  if (wanted < 0) throw InputError("the number of threads must not be negative");
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<ModelExecutor> open_executor(ModelWeights weights, const EngineOptions& options,
                                             const GeneratorOptions& asked) {
  const OpenDevice device = open_device(asked.device);
  const Bytes free = std::max(Bytes(), device.free_memory() - memory_besides_kv(device, weights.shape, options));
  const KvCacheOptions kv{.num_blocks = choose_num_blocks(weights.shape, options, asked.kv_cache_memory, free),
                          .block_size = options.block_size,
                          .dtype = options.kv_cache_dtype,
                          .max_num_seqs = options.max_num_seqs,
                          .residual_tokens = options.kv_residual_tokens};
  return make_executor(device, std::move(weights), kv, options, thread_count(asked.num_threads));
}

// Samples from the logits that the executor has just computed.
class LogitsSource final : public TokenSource {
 public:
  explicit LogitsSource(const ModelExecutor& executor) : executor_(executor) {}
  TokenId next_token(const Sequence& sequence, int logits_row) override {
    return sampler_.sample(executor_.logits(logits_row), sequence.request.sampling,
                           static_cast<std::uint64_t>(sequence.num_tokens()));
  }

 private:
  const ModelExecutor& executor_;
  Sampler sampler_;
};

// Turns tokens into text as they come, one decoder per completion.
class TextCollector {
 public:
  TextCollector(const Tokenizer& tokenizer, std::size_t num_completions, const OnText& on_text)
      : completions_(num_completions),
        decoders_(num_completions, StreamDecoder(tokenizer, SpecialText::skip)),
        on_text_(on_text) {}

  void add_token(const Sequence& sequence) {
    const auto index = static_cast<std::size_t>(sequence.request.id);
    if (sequence.finish_reason != FinishReason::stop) add_text(index, decoders_[index].push(sequence.tokens.back()));
  }

  void finish(const Sequence& sequence) {
    const auto index = static_cast<std::size_t>(sequence.request.id);
    add_text(index, decoders_[index].finish());
    Completion& completion = completions_[index];
    completion.prompt_token_ids = sequence.request.prompt_token_ids;
    completion.token_ids.assign(sequence.generated().begin(), sequence.generated().end());
    completion.finish_reason = sequence.finish_reason;
  }

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

}  // namespace

int choose_num_blocks(const ModelShape& model, const EngineOptions& options, std::optional<Bytes> kv_cache_memory,
                      Bytes free_memory) {
  const Bytes block = kv_block_bytes(model, options.block_size, options.kv_cache_dtype);
  const Bytes residuals =
      kv_residual_bytes(model, options.kv_cache_dtype, options.kv_residual_tokens) * options.max_num_seqs;
  const Bytes memory = kv_cache_memory.value_or(free_memory * options.gpu_memory_utilization);
  if (memory <= residuals && residuals > Bytes())
    throw InputError("the KV cache has no room for a single block beside " +
                     std::to_string(options.kv_residual_tokens) + " tokens in F16 for each of max_num_seqs " +
                     std::to_string(options.max_num_seqs) + " sequences; give it more memory or lower max_num_seqs");
  const double fit = (memory - residuals) / block;
  // With sinks positions are those within the cache; whatever the policy, a sequence holds no more than it keeps.
  const auto longest =
      std::min<std::int64_t>(model.max_position_embeddings, kv_capacity(options.kv_retention, options.block_size));
  const auto blocks_per_context = static_cast<double>((longest + options.block_size - 1) / options.block_size);
  const double useful = kv_cache_memory ? fit : std::min(fit, blocks_per_context * options.max_num_seqs);
  if (useful < 1) throw InputError("the KV cache has no room for a single block; give it more memory");
  return static_cast<int>(std::min<double>(useful, std::numeric_limits<int>::max()));
}

Generator::Generator(const std::filesystem::path& folder, const GeneratorOptions& options)
    : Generator(folder, load_weights(folder, options.weight_memory), options) {}

Generator::Generator(const std::filesystem::path& folder, ModelWeights weights, const GeneratorOptions& options)
    : tokenizer_(Tokenizer::load(folder / "tokenizer.json")),
      defaults_(read_generation_config(folder)),
      options_(options_for(options, weights.shape)),
      executor_(open_executor(std::move(weights), options_, options)) {
  executor_->set_op_timing(OpTiming::off);
}

Request Generator::to_request(const TextRequest& request, std::size_t first_completion) const {
  const auto found = problems(request.sampling);
  if (!found.empty()) throw InputError(found.front());
  if (request.n > 1 && request.sampling.temperature == 0)
    throw InputError(std::to_string(request.n) + " samples at temperature 0 would all be the same; raise it");
  return {.id = static_cast<SequenceId>(first_completion),
          .prompt_token_ids = tokenizer_.encode(request.prompt, SpecialTokens::add),
          .max_tokens = request.max_tokens,
          .n = request.n,
          .sampling = request.sampling,
          .stop_tokens = defaults_.eos_token_ids,
          .eos = request.eos,
          .arrival = {}};
}

Generation Generator::generate(std::span<const TextRequest> requests, const OnText& on_text) {
  Scheduler scheduler(options_, {.num_blocks = executor_->kv_cache().num_blocks,
                                 .max_position_embeddings = executor_->shape().max_position_embeddings});
  LogitsSource tokens(*executor_);
  WallClock clock;
  std::size_t num_completions = 0;
  for (const TextRequest& request : requests) num_completions += static_cast<std::size_t>(std::max(1, request.n));
  TextCollector collector(tokenizer_, num_completions, on_text);
  ServingLoop loop({executor_->shape(), options_, scheduler, *executor_, tokens, clock},
                   {.on_token = [&](const Sequence& sequence) { collector.add_token(sequence); },
                    .on_finished = [&](const Sequence& sequence) { collector.finish(sequence); }});
  std::size_t completion = 0;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    if (const auto reason = loop.submit(to_request(requests[index], completion)))
      throw InputError(requests.size() == 1 ? *reason : "prompt " + std::to_string(index + 1) + ": " + *reason);
    completion += static_cast<std::size_t>(requests[index].n);
  }
  loop.run();
  return {.completions = collector.take(), .report = loop.report()};
}

}  // namespace dculab::engine
