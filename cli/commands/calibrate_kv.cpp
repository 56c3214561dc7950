// `dculab calibrate-kv`: writes what formats of the KV cache need to know of a model.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/kv_calibration_file.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/quantize/kv_calibration_fit.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct CalibrateKvChoices {
  std::string model;
  std::string calibration_file;
  int calibration_tokens = 16384;
  int threads = 0;
  std::string output;
  OutputOptions report;
};

[[nodiscard]] std::vector<TokenId> read_text_of(const CalibrateKvChoices& choices,
                                                const std::filesystem::path& folder) {
  const std::string text = files::read_text_or_pipe(choices.calibration_file, files::kLargestText);
  std::vector<TokenId> tokens =
      engine::Tokenizer::load(folder / "tokenizer.json").encode(text, engine::SpecialTokens::omit);
  if (tokens.empty()) throw InputError(choices.calibration_file, "holds no text");
  if (tokens.size() > static_cast<std::size_t>(choices.calibration_tokens))
    tokens.resize(static_cast<std::size_t>(choices.calibration_tokens));
  return tokens;
}

[[nodiscard]] Report make_report(const engine::KvCalibration& calibration, const CalibrateKvChoices& choices,
                                 std::size_t tokens) {
  Report report{"dculab/calibrate-kv/1", {}, {}, Json::object()};
  report.json = {{"calibration_tokens", tokens}, {"output", choices.output}, {"layers", Json::array()}};
  Table table;
  table.columns = {"layer", "K: largest centre", "largest half range"};
  for (std::size_t layer = 0; layer < calibration.layers.size(); ++layer) {
    const engine::KvLayerCalibration& known = calibration.layers[layer];
    double centre = 0;
    for (const float each : known.centres) centre = std::max(centre, std::abs(double{each}));
    const double half_range = std::ranges::max(known.half_ranges);
    table.rows.push_back(
        {std::to_string(layer), Cell(number(centre, 4), centre), Cell(number(half_range, 4), half_range)});
    report.json["layers"].push_back({{"largest_k_centre", centre}, {"largest_k_half_range", half_range}});
  }
  table.notes.push_back(choices.output +
                        " is for the folder of the model: kv_cache_dtype kvquant4, kvquant3, kvquant2");
  report.tables.push_back(std::move(table));
  return report;
}

void run_calibrate_kv(const CalibrateKvChoices& choices) {
  const std::filesystem::path folder = study::find_model(choices.model);
  const engine::ModelWeights weights = engine::load_weights(folder, engine::WeightMemory::mapped);
  const std::vector<TokenId> tokens = read_text_of(choices, folder);
  const int threads =
      choices.threads > 0 ? choices.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ProgressBar bar;
  const engine::KvCalibration calibration =
      engine::calibrate_kv(weights, tokens, threads, [&bar](double share) { bar.update("K and V", share); });
  bar.clear();
  engine::write_kv_calibration(calibration, choices.output);
  show(make_report(calibration, choices, tokens.size()), choices.report);
}

}  // namespace

void add_calibrate_kv(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("calibrate-kv", "Write what KV cache formats of few bits need to know of a model");
  auto choices = std::make_shared<CalibrateKvChoices>();
  reads(command->add_option("--model", choices->model, "Hugging Face folder, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  reads(command->add_option("--calibration", choices->calibration_file, "Text that shows what K and V are like"))
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("TEXT_FILE");
  command->add_option("--calibration-tokens", choices->calibration_tokens, "Tokens of it to use at most")
      ->check(at_least(1));
  command->add_option("--threads", choices->threads, "Worker threads, 0 = all cores")->check(thread_count());
  writes(command->add_option("--output", choices->output, "File to write: FOLDER/kv_cache.safetensors of the model"))
      ->required()
      ->option_text("FILE");
  add_format_option(*command, choices->report);
  command->callback([choices] { run_calibrate_kv(*choices); });
}

}  // namespace dculab::cli
