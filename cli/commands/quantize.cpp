// `dculab quantize`: writes a model with quantized matrices.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/quantize/model_quantizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

using engine::QuantizationMethod;

struct QuantizeChoices {
  std::string model;
  std::string method = "gptq";
  std::optional<int> bits, group_size;  // absent: 4 and 128, or what the method has
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
  OutputOptions report;
};

const std::map<std::string, QuantizationMethod>& methods() {
  static const std::map<std::string, QuantizationMethod> all{{"gptq", QuantizationMethod::gptq},
                                                             {"rtn", QuantizationMethod::rtn},
                                                             {"absmax", QuantizationMethod::absmax},
                                                             {"zero-point", QuantizationMethod::zero_point},
                                                             {"smoothquant", QuantizationMethod::smooth_quant}};
  return all;
}

// A figure that does nothing is a slip.
void refuse_idle_options(const CLI::App& command, const QuantizeChoices& choices) {
  const QuantizationMethod method = methods().at(choices.method);
  const auto refuse = [&](const char* option, bool idle) {
    if (idle && command.get_option(option)->count() > 0)
      throw InputError(option, "does nothing with --method " + choices.method);
  };
  if (choices.one_pass && choices.calibration_file.empty())
    throw InputError("--one-pass", "does nothing without --calibration");
  refuse("--damp", method != QuantizationMethod::gptq);
  refuse("--alpha", method != QuantizationMethod::smooth_quant);
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
  options.num_threads =
      choices.threads > 0 ? choices.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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

[[nodiscard]] engine::QuantizedFolder to_write(const engine::QuantizedModel& model,
                                               const engine::QuantizeOptions& options,
                                               const std::filesystem::path& source) {
  engine::QuantizedFolder result{.source = source,
                                 .record = {.config = options.config,
                                            .damp_percent = options.damp,
                                            .true_sequential = options.true_sequential,
                                            .method = std::string(engine::name(options.method))},
                                 .modules = {},
                                 .changed = model.changed};
  for (const engine::QuantizedModule& module : model.modules) result.modules.emplace(module.name, &module.matrix);
  return result;
}

// Bits of integers, scales and zero points for each weight; g_idx is left out, it is not kept at run time.
[[nodiscard]] double bits_per_weight(const kernels::QuantizedMatrix& matrix) {
  return matrix.bits + (16.0 + matrix.bits) / matrix.group_size;
}

struct Totals {
  double weights = 0, bits = 0, squared_errors = 0;
  int dead_columns = 0;
};

[[nodiscard]] Totals add_up(const engine::QuantizedModel& model) {
  Totals totals;
  for (const engine::QuantizedModule& module : model.modules) {
    const double weights = static_cast<double>(module.matrix.q.size());
    totals.weights += weights;
    totals.bits += weights * bits_per_weight(module.matrix);
    totals.squared_errors += module.relative_error * module.relative_error;
    totals.dead_columns += module.dead_columns;
  }
  return totals;
}

void add_totals(Report& report, const engine::QuantizedModel& model, const QuantizeChoices& choices,
                std::size_t tokens) {
  const Totals totals = add_up(model);
  const double matrices = static_cast<double>(model.modules.size());
  const double error = std::sqrt(totals.squared_errors / matrices);
  const auto bytes =
      static_cast<double>(std::filesystem::file_size(std::filesystem::path(choices.output) / "model.safetensors"));
  Table& table = report.tables.front();
  table.notes.push_back("all: error " + percent(error) + " (root mean square), " +
                        number(totals.bits / totals.weights, 4) + " bits a weight; " + choices.output + " holds " +
                        config::short_text(Bytes(bytes)) + " of weights");
  if (tokens == 0) table.notes.emplace_back("no calibration text: errors are those of the weights, not of outputs");
  if (totals.dead_columns > 0)
    table.notes.push_back(std::to_string(totals.dead_columns) +
                          " in-features were 0 in all of the calibration text; they are rounded to nearest");
  report.json["total"] = {{"relative_error", error},
                          {"bits_per_weight", totals.bits / totals.weights},
                          {"dead_columns", totals.dead_columns},
                          {"file_bytes", bytes}};
}

[[nodiscard]] Report make_report(const engine::QuantizedModel& model, const engine::QuantizeOptions& options,
                                 const QuantizeChoices& choices, std::size_t tokens) {
  Report report{"dculab/quantize/1", {}, {}, Json::object()};
  const std::string error = tokens > 0 ? "output error" : "weight error";
  report.json = {{"method", choices.method},
                 {"bits", options.config.bits},
                 {"group_size", options.config.group_size},
                 {"desc_act", options.config.desc_act},
                 {"sym", options.config.sym},
                 {"checkpoint_format", name(options.config.format)},
                 {"calibration_tokens", tokens},
                 {"error_of", tokens > 0 ? "outputs" : "weights"},
                 {"output", choices.output},
                 {"matrices", Json::array()}};
  Table table;
  table.columns = {"matrix", "rows", "columns", error, "bits a weight"};
  for (const engine::QuantizedModule& module : model.modules) {
    const kernels::QuantizedMatrix& matrix = module.matrix;
    table.rows.push_back({module.name, std::to_string(matrix.rows), std::to_string(matrix.columns),
                          Cell(percent(module.relative_error), module.relative_error),
                          Cell(number(bits_per_weight(matrix), 4), bits_per_weight(matrix))});
    report.json["matrices"].push_back({{"name", module.name},
                                       {"rows", matrix.rows},
                                       {"columns", matrix.columns},
                                       {"relative_error", module.relative_error},
                                       {"bits_per_weight", bits_per_weight(matrix)}});
  }
  report.tables.push_back(std::move(table));
  add_totals(report, model, choices, tokens);
  return report;
}

void run_quantize(const QuantizeChoices& choices) {
  const std::filesystem::path folder = study::find_model(choices.model);
  engine::require_new_folder(choices.output);
  (void)engine::companion_files(folder);  // refused now rather than after the work
  const engine::QuantizeOptions options = to_options(choices);
  const engine::ModelWeights weights = engine::load_weights(folder, engine::WeightMemory::mapped);
  if (const auto found = problems(options, weights); !found.empty()) throw InputError(found.front());
  const std::vector<TokenId> tokens = read_calibration(choices, folder);
  ProgressBar bar;
  const engine::QuantizedModel model = engine::quantize_model(
      weights, tokens, options, [&bar](const auto& label, double share) { bar.update(label, share); });
  bar.clear();
  engine::write_quantized_model(to_write(model, options, folder), choices.output);
  show(make_report(model, options, choices, tokens.size()), choices.report);
}

}  // namespace

void add_quantize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("quantize", "Write a model with quantized weights");
  auto choices = std::make_shared<QuantizeChoices>();
  reads(command->add_option("--model", choices->model, "Hugging Face folder, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  command->add_option("--method", choices->method, "gptq, rtn, absmax, zero-point, smoothquant")
      ->check(CLI::IsMember({"gptq", "rtn", "absmax", "zero-point", "smoothquant"}));
  command->add_option("--bits", choices->bits, "2, 3, 4 or 8");
  command->add_option("--group-size", choices->group_size, "In-features that share a scale; -1 = all of a row");
  command->add_flag("--desc-act", choices->desc_act, "GPTQ: columns with the largest activations first (act-order)");
  command->add_flag("--sym", choices->sym, "Zero points in the middle of the range");
  command->add_flag("--lm-head", choices->lm_head, "Quantize lm_head too");
  command->add_option("--damp", choices->damp, "GPTQ: added to the Hessian's diagonal, as a share of its mean");
  command->add_option("--alpha", choices->alpha, "SmoothQuant: share of the activations' scale that weights take over");
  command->add_flag("--one-pass", choices->one_pass,
                    "Look at all inputs of a layer at once, not at what its quantized matrices give the later ones");
  reads(command->add_option("--calibration", choices->calibration_file, "Text that shows what activations are like"))
      ->check(CLI::ExistingFile)
      ->option_text("TEXT_FILE");
  command->add_option("--calibration-tokens", choices->calibration_tokens, "Tokens of it to use at most")
      ->check(at_least(1));
  command->add_option("--checkpoint-format", choices->checkpoint_format, "gptq (zero points less 1) or gptq_v2")
      ->check(CLI::IsMember({"gptq", "gptq_v2"}));
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
