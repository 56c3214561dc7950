// `dculab quantize`: writes a model with quantized matrices.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/calibration/kv_ranges.hpp"
#include "engine/checkpoint/kv_scales.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/quantize/kv_calibration_fit.hpp"
#include "engine/quantize/model_quantizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "files/input.hpp"
#include "present/engine/quantize_report.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

using engine::QuantizationMethod;

struct QuantizeChoices {
  std::string model;
  std::string method = "gptq";
  std::optional<int> bits, group_size;        // absent: 4 and 128, or what the method has
  std::optional<std::string> kv_cache_dtype;  // that is calibrated
  std::string fisher_file;
  bool desc_act = false;
  bool sym = false;
  bool lm_head = false;
  bool one_pass = false;  // not true_sequential
  double damp = 0.01;
  double alpha = 0.5;
  std::string calibration_file;
  int calibration_tokens = 16384;
  std::string checkpoint_format = "gptq";
  int threads = 0;
  std::string output;
  present::OutputOptions report;
};

const std::map<std::string, QuantizationMethod>& methods() {
  static const std::map<std::string, QuantizationMethod> all{{"gptq", QuantizationMethod::gptq},
                                                             {"rtn", QuantizationMethod::rtn},
                                                             {"absmax", QuantizationMethod::absmax},
                                                             {"zero-point", QuantizationMethod::zero_point},
                                                             {"smoothquant", QuantizationMethod::smooth_quant}};
  return all;
}

constexpr std::string_view kNoMethod = "none";

[[nodiscard]] bool quantizes_weights(const QuantizeChoices& choices) { return choices.method != kNoMethod; }

// A figure that does nothing is a slip.
void refuse_idle_options(const CLI::App& command, const QuantizeChoices& choices) {
  const std::string method = "with --method " + choices.method;
  if (choices.kv_cache_dtype && choices.calibration_file.empty())
    throw InputError("--kv-cache-dtype", "needs --calibration: text that shows how large keys and values become");
  if (!quantizes_weights(choices)) {
    if (!choices.kv_cache_dtype) throw InputError("--method", "none does nothing without --kv-cache-dtype");
    for (const char* option :
         {"--bits", "--group-size", "--desc-act", "--sym", "--lm-head", "--one-pass", "--checkpoint-format"})
      refuse_idle(command, option, true, method);
  }
  if (!choices.fisher_file.empty() &&
      !(choices.kv_cache_dtype && kv_format(parse_dtype(*choices.kv_cache_dtype).value()).needs_calibration))
    throw InputError("--fisher", "needs --kv-cache-dtype kvquant4, kvquant3 or kvquant2");
  refuse_idle(command, "--one-pass", choices.calibration_file.empty(), "without --calibration");
  refuse_idle(command, "--damp", choices.method != name(QuantizationMethod::gptq), method);
  refuse_idle(command, "--alpha", choices.method != name(QuantizationMethod::smooth_quant), method);
}

[[nodiscard]] int worker_threads(const QuantizeChoices& choices) {
  return choices.threads > 0 ? choices.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

[[nodiscard]] engine::QuantizeOptions to_options(const QuantizeChoices& choices) {
  engine::QuantizeOptions options;
  options.method = methods().at(choices.method);
  const bool grouped = options.method == QuantizationMethod::gptq || options.method == QuantizationMethod::rtn;
  const bool is_symmetric =
      options.method == QuantizationMethod::absmax || options.method == QuantizationMethod::smooth_quant;
  if (choices.sym && !grouped && !is_symmetric) throw InputError("--sym", "zero-point quantization is asymmetric");
  options.config = {.format = choices.checkpoint_format == "gptq" ? QuantizedFormat::gptq : QuantizedFormat::gptq_v2,
                    .bits = choices.bits.value_or(grouped ? 4 : 8),
                    .group_size = choices.group_size.value_or(grouped ? 128 : -1),
                    .desc_act = choices.desc_act,
                    .sym = choices.sym || is_symmetric,
                    .lm_head = choices.lm_head};
  options.damp = choices.damp;
  options.alpha = choices.alpha;
  options.true_sequential = !choices.one_pass;
  options.num_threads = worker_threads(choices);
  return options;
}

// The first `calibration_tokens` tokens of the file.
[[nodiscard]] std::vector<TokenId> read_calibration(const QuantizeChoices& choices,
                                                    const std::filesystem::path& folder) {
  if (choices.calibration_file.empty()) return {};
  const std::string text = files::read_text_or_pipe(choices.calibration_file, files::kLargestText);
  const auto tokenizer = engine::Tokenizer::load(folder / "tokenizer.json");
  std::vector<TokenId> tokens = tokenizer.encode(text, engine::SpecialTokens::omit);
  if (tokens.empty()) throw InputError(choices.calibration_file, "holds no text");
  if (tokens.size() > static_cast<std::size_t>(choices.calibration_tokens))
    tokens.resize(static_cast<std::size_t>(choices.calibration_tokens));
  return tokens;
}

// The weights in their new format, as they are to be written.
[[nodiscard]] engine::QuantizedModel quantize_weights(const QuantizeChoices& choices,
                                                      const engine::QuantizeOptions& options,
                                                      const engine::ModelWeights& weights,
                                                      const std::vector<TokenId>& tokens,
                                                      engine::QuantizedFolder& folder) {
  ProgressBar bar;
  engine::QuantizedModel model = engine::quantize_model(
      weights, tokens, options, [&bar](const auto& label, double share) { bar.update(label, share); });
  bar.clear();
  folder.record = {.config = options.config,
                   .damp_percent = options.damp,
                   .true_sequential = options.true_sequential,
                   .method = choices.method};
  folder.changed = model.changed;
  return model;
}

void find_kv_scales(present::QuantizedAnswer& answer, engine::ModelWeights weights, const std::vector<TokenId>& tokens,
                    const engine::TextRun& run, engine::QuantizedFolder& folder) {
  const auto ranges = engine::observe_kv_ranges(weights, tokens, run);
  const std::vector<kernels::Fp8KvScales> scales = engine::e4m3_scales(ranges);
  folder.kv_scales = engine::kv_scale_tensors(weights, scales);
  for (std::size_t layer = 0; layer < ranges.size(); ++layer)
    answer.kv_scales.push_back({ranges[layer], scales[layer]});
}

void calibrate_kv_cache(const QuantizeChoices& choices, const engine::ModelWeights& weights,
                        const std::vector<TokenId>& tokens, present::QuantizedAnswer& answer,
                        engine::QuantizedFolder& folder) {
  ProgressBar bar;
  const auto show_progress = [&bar](double share) { bar.update("keys and values", share); };
  if (kv_format(parse_dtype(*choices.kv_cache_dtype).value()).needs_calibration) {
    folder.kv_calibration = engine::calibrate_kv(
        weights, tokens,
        {.num_threads = worker_threads(choices), .fisher = choices.fisher_file, .on_progress = show_progress});
    answer.kv_calibration = folder.kv_calibration->layers;
  } else {
    find_kv_scales(answer, weights, tokens, {.num_threads = worker_threads(choices), .on_progress = show_progress},
                   folder);
  }
  bar.clear();
}

void run_quantize(const QuantizeChoices& choices) {
  const std::filesystem::path folder = study::find_model(choices.model);
  engine::require_new_folder(choices.output);
  (void)engine::companion_files(folder);  // refused now rather than after the work
  const engine::ModelWeights weights = engine::load_weights(folder, engine::WeightMemory::mapped);
  present::QuantizedAnswer answer{.method = choices.method, .output = choices.output};
  if (quantizes_weights(choices)) {
    answer.options = to_options(choices);
    if (const auto found = problems(answer.options, weights); !found.empty()) throw InputError(found.front());
  }
  const std::vector<TokenId> tokens = read_calibration(choices, folder);
  answer.calibration_tokens = tokens.size();
  engine::QuantizedFolder written{.source = folder};
  if (choices.kv_cache_dtype) calibrate_kv_cache(choices, weights, tokens, answer, written);
  if (!written.kv_calibration && weights.kv_calibration) written.kv_calibration = *weights.kv_calibration();
  if (quantizes_weights(choices)) {
    answer.model = quantize_weights(choices, answer.options, weights, tokens, written);
    for (const engine::QuantizedModule& module : answer.model->modules)
      written.modules.emplace(module.name, &module.matrix);
  }
  engine::write_quantized_model(written, choices.output);
  present::show(present::quantize_report(answer), choices.report);
}

// How weights are stored.
void add_weight_options(CLI::App& command, QuantizeChoices& choices) {
  command.add_option("--bits", choices.bits, "2, 3, 4 or 8");
  command.add_option("--group-size", choices.group_size, "In-features that share a scale; -1 = all of a row");
  command.add_flag("--desc-act", choices.desc_act, "GPTQ: columns with the largest activations first (act-order)");
  command.add_flag("--sym", choices.sym, "Zero points in the middle of the range");
  command.add_flag("--lm-head", choices.lm_head, "Quantize lm_head too");
  command.add_option("--damp", choices.damp, "GPTQ: added to the Hessian's diagonal, as a share of its mean");
  command.add_option("--alpha", choices.alpha, "SmoothQuant: share of the activations' scale that weights take over");
  command.add_flag("--one-pass", choices.one_pass,
                   "Look at all inputs of a layer at once, not at what its quantized matrices give the later ones");
  command.add_option("--checkpoint-format", choices.checkpoint_format, "gptq (zero points less 1) or gptq_v2")
      ->check(CLI::IsMember({"gptq", "gptq_v2"}));
}

// What is learned from text, of activations and of the KV cache.
void add_calibration_options(CLI::App& command, QuantizeChoices& choices) {
  reads(command.add_option("--calibration", choices.calibration_file, "Text that shows what activations are like"))
      ->check(CLI::ExistingFile)
      ->option_text("TEXT_FILE");
  command.add_option("--calibration-tokens", choices.calibration_tokens, "Tokens of it to use at most")
      ->check(at_least(1));
  command
      .add_option(
          "--kv-cache-dtype", choices.kv_cache_dtype,
          "Also find what such a KV cache needs to know: fp8_e4m3 (scales of each layer's keys and values), kvquant4, "
          "kvquant3, kvquant2 (one file for all three)")
      ->check(CLI::IsMember({"fp8_e4m3", "kvquant4", "kvquant3", "kvquant2"}));
  reads(command.add_option("--fisher", choices.fisher_file,
                           "kvquant: how much the loss depends on each value of the calibration text's keys and "
                           "values (scripts/model/fisher.py)"))
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
}

}  // namespace

void add_quantize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("quantize", "Write a model with quantized weights");
  auto choices = std::make_shared<QuantizeChoices>();
  reads(command->add_option("--model", choices->model, "Hugging Face folder, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  command
      ->add_option("--method", choices->method,
                   "gptq, rtn, absmax, zero-point, smoothquant; none: the weights stay as they are")
      ->check(CLI::IsMember({"gptq", "rtn", "absmax", "zero-point", "smoothquant", "none"}));
  add_weight_options(*command, *choices);
  add_calibration_options(*command, *choices);
  command->add_option("--threads", choices->threads, "Worker threads, 0 = all cores")->check(thread_count());
  writes(command->add_option("--output", choices->output, "Folder to write, whole or not at all"))
      ->required()
      ->option_text("FOLDER");
  add_format_option(*command, choices->report);
  command->callback([choices, command] {
    refuse_idle_options(*command, *choices);
    run_quantize(*choices);
  });
}

}  // namespace dculab::cli
