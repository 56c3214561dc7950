#include "study/measure/quantized_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/kv_scales.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/quantize/kv_calibration_fit.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

using engine::QuantizationMethod;

[[nodiscard]] int worker_threads(const QuantizeQuestion& question) {
  return question.threads > 0 ? question.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The first `calibration_tokens` tokens of the file.
[[nodiscard]] std::vector<TokenId> read_calibration(const QuantizeQuestion& question,
                                                    const std::filesystem::path& folder) {
  if (question.calibration_file.empty()) return {};
  const std::string text = files::read_text(question.calibration_file, files::kLargestText);
  const auto tokenizer = engine::Tokenizer::load(folder / "tokenizer.json");
  std::vector<TokenId> tokens = tokenizer.encode(text, engine::SpecialTokens::omit);
  if (tokens.empty()) throw InputError(question.calibration_file, "holds no text");
  if (tokens.size() > static_cast<std::size_t>(question.calibration_tokens))
    tokens.resize(static_cast<std::size_t>(question.calibration_tokens));
  return tokens;
}

// The weights in their new format, as they are to be written.
[[nodiscard]] engine::QuantizedModel quantize_weights(const engine::QuantizeOptions& options,
                                                      const engine::ModelWeights& weights,
                                                      const std::vector<TokenId>& tokens,
                                                      const engine::BenchProgress& progress,
                                                      engine::QuantizedFolder& folder) {
  engine::QuantizedModel model = engine::quantize_model(weights, tokens, options, progress);
  folder.record = {.config = options.config,
                   .damp_percent = options.damp,
                   .true_sequential = options.true_sequential,
                   .method = std::string(name(options.method))};
  folder.changed = model.changed;
  return model;
}

void find_kv_scales(QuantizedAnswer& answer, engine::ModelWeights weights, const std::vector<TokenId>& tokens,
                    const engine::TextRun& run, engine::QuantizedFolder& folder) {
  const auto ranges = engine::observe_kv_ranges(weights, tokens, run);
  const std::vector<kernels::Fp8KvScales> scales = engine::e4m3_scales(ranges);
  folder.kv_scales = engine::kv_scale_tensors(weights, scales);
  for (std::size_t layer = 0; layer < ranges.size(); ++layer)
    answer.kv_scales.push_back({ranges[layer], scales[layer]});
}

void calibrate_kv_cache(const QuantizeQuestion& question, const engine::ModelWeights& weights,
                        const std::vector<TokenId>& tokens, const engine::BenchProgress& progress,
                        QuantizedAnswer& answer, engine::QuantizedFolder& folder) {
  const auto show_progress = [&progress](double share) { progress("keys and values", share); };
  const int num_threads = worker_threads(question);
  if (kv_format(*question.kv_cache_dtype).needs_calibration) {
    folder.kv_calibration = engine::calibrate_kv(
        weights, tokens, {.num_threads = num_threads, .fisher = question.fisher_file, .on_progress = show_progress});
    answer.kv_calibration = folder.kv_calibration->layers;
  } else {
    find_kv_scales(answer, weights, tokens, {.num_threads = num_threads, .on_progress = show_progress}, folder);
  }
}

}  // namespace

engine::QuantizeOptions quantize_options(const WeightChoices& choices, int num_threads) {
  engine::QuantizeOptions options;
  options.method = choices.method;
  const bool grouped = options.method == QuantizationMethod::gptq || options.method == QuantizationMethod::rtn;
  const bool is_symmetric =
      options.method == QuantizationMethod::absmax || options.method == QuantizationMethod::smooth_quant;
  if (choices.sym && !grouped && !is_symmetric) throw InputError("--sym", "zero-point quantization is asymmetric");
  options.config = {.format = choices.format,
                    .bits = choices.bits.value_or(grouped ? 4 : 8),
                    .group_size = choices.group_size.value_or(grouped ? 128 : -1),
                    .desc_act = choices.desc_act,
                    .sym = choices.sym || is_symmetric,
                    .lm_head = choices.lm_head};
  options.damp = choices.damp;
  options.alpha = choices.alpha;
  options.true_sequential = !choices.one_pass;
  options.num_threads = num_threads;
  return options;
}

QuantizedAnswer quantize_folder(const QuantizeQuestion& question, const engine::BenchProgress& progress) {
  const std::filesystem::path folder = find_model(question.model);
  engine::require_new_folder(question.output);
  (void)engine::companion_files(folder);  // refused now rather than after the work
  const engine::ModelWeights weights = engine::load_weights(folder, engine::WeightMemory::mapped);
  QuantizedAnswer answer;
  if (question.weights) {
    answer.options = quantize_options(*question.weights, worker_threads(question));
    if (const auto found = problems(answer.options, weights); !found.empty()) throw InputError(found.front());
  }
  const std::vector<TokenId> tokens = read_calibration(question, folder);
  answer.calibration_tokens = tokens.size();
  engine::QuantizedFolder written{.source = folder};
  if (question.kv_cache_dtype) calibrate_kv_cache(question, weights, tokens, progress, answer, written);
  if (!written.kv_calibration && weights.kv_calibration) written.kv_calibration = *weights.kv_calibration();
  if (question.weights) {
    answer.model = quantize_weights(answer.options, weights, tokens, progress, written);
    for (const engine::QuantizedModule& module : answer.model->modules)
      written.modules.emplace(module.name, &module.matrix);
  }
  engine::write_quantized_model(written, question.output);
  return answer;
}

}  // namespace dculab::study
