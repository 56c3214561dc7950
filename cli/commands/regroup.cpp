// `dculab regroup`: a model with fewer KV heads, as a new model folder.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/checkpoint/read_text.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/regroup.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "fields/json_fields.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kFewestTokens = 64;  // fewer say nothing about the heads

using GroupingMethods = std::map<std::string, engine::GroupingMethod>;
using HeadSimilarities = std::map<std::string, engine::HeadSimilarity>;
using HeadMerges = std::map<std::string, engine::HeadMerge>;

GroupingMethods grouping_methods() {
  return {{"mean", engine::GroupingMethod::mean}, {"similarity", engine::GroupingMethod::similarity}};
}

HeadSimilarities head_similarities() {
  return {{"cosine", engine::HeadSimilarity::cosine},
          {"norm", engine::HeadSimilarity::norm},
          {"distance", engine::HeadSimilarity::distance},
          {"svd", engine::HeadSimilarity::svd}};
}

HeadMerges head_merges() {
  return {
      {"mean", engine::HeadMerge::mean}, {"weighted", engine::HeadMerge::weighted}, {"svd", engine::HeadMerge::svd}};
}

struct RegroupChoices {
  std::string model;
  std::string method;
  std::string similarity = "cosine";
  std::string merge = "mean";
  int kv_heads = 0;
  std::string calibration;  // a text file
  int calibration_tokens = 8192;
  int num_threads = 0;
  std::string folder;
  OutputOptions output;
};

[[nodiscard]] engine::RegroupOptions options_from(const RegroupChoices& choices) {
  return {.num_key_value_heads = choices.kv_heads,
          .method = grouping_methods().at(choices.method),
          .similarity = head_similarities().at(choices.similarity),
          .merge = head_merges().at(choices.merge)};
}

[[nodiscard]] std::vector<TokenId> calibration_ids(const RegroupChoices& choices, const std::filesystem::path& model) {
  const auto tokenizer = engine::Tokenizer::load(model / "tokenizer.json");
  const std::string text = files::read_text_or_pipe(choices.calibration, files::kLargestText);
  std::vector<TokenId> ids = tokenizer.encode(text, engine::SpecialTokens::omit);
  if (ids.size() < kFewestTokens)
    throw InputError(choices.calibration, "has only " + std::to_string(ids.size()) +
                                              " tokens, too few to compare heads; give at least " +
                                              std::to_string(kFewestTokens));
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(choices.calibration_tokens)));
  return ids;
}

[[nodiscard]] std::vector<engine::HeadStatistics> calibrate_heads(const RegroupChoices& choices,
                                                                  const engine::ModelWeights& weights,
                                                                  const std::vector<TokenId>& ids) {
  if (ids.empty()) return {};
  ProgressBar progress;
  engine::CalibrationRun run;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  run.num_threads = choices.num_threads > 0 ? choices.num_threads : cores;
  run.second_moments = options_from(choices).second_moments();
  run.on_progress = [&](double share) { progress.update("comparing heads", share); };
  try {
    return engine::observe_heads(weights, ids, run);
  } catch (const InputError& error) {
    throw InputError(choices.calibration, error.what());
  }
}

[[nodiscard]] std::string groups_text(const engine::HeadGroups& groups) {
  std::string text;
  for (const std::vector<int>& group : groups) {
    if (!text.empty()) text += " |";
    for (const int head : group) text += (text.empty() ? "" : " ") + std::to_string(head);
  }
  return text;
}

[[nodiscard]] Cell similarity_cell(const std::optional<double>& similarity) {
  return similarity ? Cell(number(*similarity), *similarity) : Cell("-", "");
}

[[nodiscard]] Json json_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

[[nodiscard]] Json layer_json(std::size_t layer, const engine::RegroupedLayer& grouped) {
  return {{"layer", layer},
          {"groups", grouped.groups},
          {"weights", grouped.weights},
          {"similarity_inside", json_or_null(grouped.similarity.inside)},
          {"similarity_between", json_or_null(grouped.similarity.between)},
          {"neighbours_inside", json_or_null(grouped.neighbours.inside)},
          {"neighbours_between", json_or_null(grouped.neighbours.between)}};
}

[[nodiscard]] Table layers_table(const engine::Regrouping& result, const std::string& similarity) {
  Table table;
  table.columns = {"layer", "KV heads that became one", "inside", "between", "neighbours inside", "between"};
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer) {
    const engine::RegroupedLayer& grouped = result.layers[layer];
    table.rows.push_back({std::to_string(layer), groups_text(grouped.groups),
                          similarity_cell(grouped.similarity.inside), similarity_cell(grouped.similarity.between),
                          similarity_cell(grouped.neighbours.inside), similarity_cell(grouped.neighbours.between)});
  }
  table.notes = {"inside, between: mean " + similarity +
                 " similarity of K and V over pairs of heads in one group, in two"};
  return table;
}

[[nodiscard]] std::string summary(const RegroupChoices& choices, const ModelShape& before, std::size_t tokens) {
  const std::string grouped = choices.method == "mean" ? "neighbouring heads" : choices.similarity + " similarity";
  std::string text = std::to_string(before.heads().num_key_value_heads) + " KV heads to " +
                     std::to_string(choices.kv_heads) + ": groups by " + grouped + ", " + choices.merge +
                     " of each group";
  if (tokens > 0) text += "; compared on " + std::to_string(tokens) + " tokens of " + choices.calibration;
  return text;
}

[[nodiscard]] Report make_report(const RegroupChoices& choices, const ModelShape& before,
                                 const engine::Regrouping& result, std::size_t tokens) {
  Report report{"dculab/regroup/1", {}, {}, Json::object()};
  report.heading = {summary(choices, before, tokens), "written to " + choices.folder};
  report.tables.push_back(layers_table(result, choices.similarity));
  report.json = {{"model", before.name},
                 {"num_key_value_heads_before", before.heads().num_key_value_heads},
                 {"num_key_value_heads", choices.kv_heads},
                 {"method", choices.method},
                 {"similarity", choices.similarity},
                 {"merge", choices.merge},
                 {"calibration_tokens", tokens},
                 {"folder", choices.folder}};
  report.json["layers"] = Json::array();
  for (std::size_t layer = 0; layer < result.layers.size(); ++layer)
    report.json["layers"].push_back(layer_json(layer, result.layers[layer]));
  return report;
}

// What can be refused from config.json alone is, before weights are loaded.
void require_regroupable(const std::filesystem::path& model, const RegroupChoices& choices) {
  const std::string config = (model / "config.json").string();
  if (JsonFields(config, engine::read_text(config)).has("quantization_config"))
    throw InputError(config, "the checkpoint is quantized and cannot be regrouped; regroup the one it was made from");
  engine::ModelWeights names;
  names.shape = engine::read_model_shape(model);
  engine::require_tensor_names(names.shape);
  engine::require_mergeable_heads(names.shape);
  if (std::ranges::any_of(engine::tensor_slots(names), &engine::TensorSlot::is_part))
    throw InputError(config,
                     "has several matrices in one tensor (Q, K and V, or gate and up), which is not written; models "
                     "with a tensor each can be regrouped: Llama, Mistral, Qwen2, Qwen3, Gemma");
  try {
    engine::require_divisor(names.shape, choices.kv_heads);
  } catch (const InputError& error) {
    throw InputError("--kv-heads", error.what());
  }
}

void run_regroup(const RegroupChoices& choices) {
  const engine::RegroupOptions options = options_from(choices);
  if (options.needs_calibration() && choices.calibration.empty())
    throw InputError("--calibration is missing: heads are compared, and weighted, on text; name a text file");
  const std::filesystem::path model = study::find_model(choices.model);
  require_regroupable(model, choices);
  engine::require_new_folder(choices.folder);
  (void)engine::companion_files(model);  // refused now rather than after the work
  std::vector<TokenId> ids;
  if (!choices.calibration.empty()) ids = calibration_ids(choices, model);
  const engine::ModelWeights weights = engine::load_weights(model);
  const engine::Regrouping result = engine::regroup(weights, options, calibrate_heads(choices, weights, ids));
  engine::write_model(choices.folder, result.weights, model);
  show(make_report(choices, weights.shape, result, ids.size()), choices.output);
}

}  // namespace

void add_regroup(CLI::App& app) {
  CLI::App* command = app.add_subcommand("regroup", "Make a model with fewer KV heads: MHA to GQA or MQA");
  auto choices = std::make_shared<RegroupChoices>();
  reads(command->add_option("--model", choices->model, "Hugging Face folder, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  command->add_option("--kv-heads", choices->kv_heads, "KV heads to have, a divisor of the model's")->required();
  command->add_option("--method", choices->method, "mean: neighbouring heads become one; similarity: similar ones")
      ->required()
      ->check(CLI::IsMember(grouping_methods()))
      ->option_text("mean|similarity REQUIRED");
  command->add_option("--similarity", choices->similarity, "Of K and V, over the calibration text")
      ->check(CLI::IsMember(head_similarities()))
      ->option_text("cosine|norm|distance|svd [cosine]");
  command
      ->add_option("--merge", choices->merge,
                   "mean; weighted: by what heads add to the residual; svd: what loses least, Q and O following")
      ->check(CLI::IsMember(head_merges()))
      ->option_text("mean|weighted|svd [mean]");
  reads(command->add_option("--calibration", choices->calibration, "Text to compare heads on"))
      ->option_text("TEXT_FILE");
  command->add_option("--calibration-tokens", choices->calibration_tokens, "Tokens of it to read at most")
      ->check(at_least(static_cast<int>(kFewestTokens)));
  command->add_option("--threads", choices->num_threads, "Worker threads, 0 = all cores")->check(thread_count());
  writes(command->add_option("--output", choices->folder, "The new model folder, made whole or not at all"))
      ->required()
      ->option_text("FOLDER REQUIRED");
  add_format_option(*command, choices->output);
  command->callback([choices] { run_regroup(*choices); });
}

}  // namespace dculab::cli
