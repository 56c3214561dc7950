// `dculab quantize`: writes a model with quantized matrices.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "present/measure/quantize_report.hpp"
#include "present/output/show.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

using engine::QuantizationMethod;

struct QuantizeChoices {
  std::string method = "gptq";
  study::WeightChoices weights;
  std::string checkpoint_format = "gptq";
  std::optional<std::string> kv_cache_dtype;  // that is calibrated
  study::QuantizeQuestion question;
  present::OutputOptions report;
};

constexpr std::string_view kNoMethod = "none";

[[nodiscard]] bool quantizes_weights(const QuantizeChoices& choices) { return choices.method != kNoMethod; }

// A figure that does nothing is a slip.
void refuse_idle_options(const CLI::App& command, const QuantizeChoices& choices) {
  const std::string method = "with --method " + choices.method;
  if (choices.kv_cache_dtype && choices.question.calibration_file.empty())
    throw InputError("--kv-cache-dtype", "needs --calibration: text that shows how large keys and values become");
  if (!quantizes_weights(choices)) {
    if (!choices.kv_cache_dtype) throw InputError("--method", "none does nothing without --kv-cache-dtype");
    for (const char* option :
         {"--bits", "--group-size", "--desc-act", "--sym", "--lm-head", "--one-pass", "--checkpoint-format"})
      refuse_idle(command, option, true, method);
  }
  if (!choices.question.fisher_file.empty() &&
      !(choices.kv_cache_dtype && kv_format(parse_dtype(*choices.kv_cache_dtype).value()).needs_calibration))
    throw InputError("--fisher", "needs --kv-cache-dtype kvquant4, kvquant3 or kvquant2");
  refuse_idle(command, "--one-pass", choices.question.calibration_file.empty(), "without --calibration");
  refuse_idle(command, "--damp", choices.method != name(QuantizationMethod::gptq), method);
  refuse_idle(command, "--alpha", choices.method != name(QuantizationMethod::smooth_quant), method);
}

[[nodiscard]] QuantizationMethod quantization_method(const std::string& text) {
  for (const QuantizationMethod method : {QuantizationMethod::rtn, QuantizationMethod::absmax,
                                          QuantizationMethod::zero_point, QuantizationMethod::smooth_quant})
    if (text == name(method)) return method;
  return QuantizationMethod::gptq;
}

void run_quantize(const QuantizeChoices& choices) {
  study::QuantizeQuestion question = choices.question;
  if (choices.kv_cache_dtype) question.kv_cache_dtype = parse_dtype(*choices.kv_cache_dtype);
  if (quantizes_weights(choices)) {
    question.weights = choices.weights;
    question.weights->method = quantization_method(choices.method);
    if (choices.checkpoint_format != "gptq") question.weights->format = QuantizedFormat::gptq_v2;
  }
  ProgressBar bar;
  const study::QuantizedAnswer answer = study::quantize_folder(question, bar.updates());
  bar.clear();
  present::show(present::quantize_report(question, answer), choices.report);
}

// How weights are stored.
void add_weight_options(CLI::App& command, QuantizeChoices& choices) {
  command.add_option("--bits", choices.weights.bits, "2, 3, 4 or 8");
  command.add_option("--group-size", choices.weights.group_size, "In-features that share a scale; -1 = all of a row");
  command.add_flag("--desc-act", choices.weights.desc_act,
                   "GPTQ: columns with the largest activations first (act-order)");
  command.add_flag("--sym", choices.weights.sym, "Symmetric: zero points in the middle of the range");
  command.add_flag("--lm-head", choices.weights.lm_head, "Quantize lm_head too");
  command.add_option("--damp", choices.weights.damp, "GPTQ: added to the Hessian's diagonal, as a share of its mean");
  command.add_option("--alpha", choices.weights.alpha,
                     "SmoothQuant: share of the activations' scale that weights take over");
  command.add_flag("--one-pass", choices.weights.one_pass,
                   "Collect the inputs of a whole layer at once, before any of its matrices is quantized");
  command.add_option("--checkpoint-format", choices.checkpoint_format, "gptq (zero points less 1) or gptq_v2")
      ->check(CLI::IsMember({"gptq", "gptq_v2"}));
}

// What is learned from text, of activations and of the KV cache.
void add_calibration_options(CLI::App& command, QuantizeChoices& choices) {
  reads(command.add_option("--calibration", choices.question.calibration_file, "Calibration text"))
      ->check(CLI::ExistingFile)
      ->option_text("TEXT_FILE");
  command
      .add_option("--calibration-tokens", choices.question.calibration_tokens,
                  "Most tokens of the calibration text to use")
      ->check(at_least(1));
  command
      .add_option("--kv-cache-dtype", choices.kv_cache_dtype,
                  "Also calibrate a KV cache: fp8_e4m3 (scales of each layer's keys and values); kvquant4, kvquant3 or "
                  "kvquant2 "
                  "(one file for all three)")
      ->check(CLI::IsMember({"fp8_e4m3", "kvquant4", "kvquant3", "kvquant2"}));
  reads(command.add_option("--fisher", choices.question.fisher_file,
                           "kvquant: Fisher information of the calibration text's keys and values "
                           "(scripts/model/fisher.py)"))
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
}

}  // namespace

void add_quantize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("quantize", "Write a model with quantized weights");
  auto choices = std::make_shared<QuantizeChoices>();
  reads(
      command->add_option("--model", choices->question.model, "Hugging Face folder, or a name under scenarios/models"),
      study::try_find_model)
      ->required();
  command
      ->add_option("--method", choices->method,
                   "gptq, rtn, absmax, zero-point, smoothquant; none: the weights stay as they are")
      ->check(CLI::IsMember({"gptq", "rtn", "absmax", "zero-point", "smoothquant", "none"}));
  add_weight_options(*command, *choices);
  add_calibration_options(*command, *choices);
  command->add_option("--threads", choices->question.threads, "Worker threads, 0 = all cores")->check(thread_count());
  writes(command->add_option("--output", choices->question.output, "Folder to write, whole or not at all"))
      ->required()
      ->option_text("FOLDER");
  add_format_option(*command, choices->report);
  add_examples(*command,
               {"dculab quantize --model dculab-tiny --method rtn --bits 4 --group-size 16 --output dculab-tiny-int4"});
  command->callback([choices, command] {
    refuse_idle_options(*command, *choices);
    run_quantize(*choices);
  });
}

}  // namespace dculab::cli
