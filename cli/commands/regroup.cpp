// `dculab regroup`: a model with fewer KV heads, as a new model folder.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/regroup.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "fields/json_fields.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"
#include "model/folder/model_files.hpp"
#include "present/engine/regroup_report.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr std::size_t kFewestTokens = 64;  // fewer say nothing about the heads

using GroupingMethods = std::map<std::string, engine::GroupingMethod>;
using HeadSimilarities = std::map<std::string, engine::HeadSimilarity>;
using HeadMerges = std::map<std::string, engine::HeadMerge>;
using ComparedByName = std::map<std::string, engine::ComparedHeads>;
using LostErrors = std::map<std::string, engine::LostError>;

GroupingMethods grouping_methods() {
  return {{"mean", engine::GroupingMethod::mean},
          {"similarity", engine::GroupingMethod::similarity},
          {"key-norm", engine::GroupingMethod::key_norm},
          {"qcqa", engine::GroupingMethod::qcqa}};
}

ComparedByName compared_heads() {
  return {{"kv", engine::ComparedHeads::key_value},
          {"query", engine::ComparedHeads::query},
          {"output", engine::ComparedHeads::output}};
}

LostErrors lost_errors() {
  return {{"weights", engine::LostError::weights},
          {"activations", engine::LostError::activations},
          {"svd", engine::LostError::svd}};
}

HeadSimilarities head_similarities() {
  return {{"cosine", engine::HeadSimilarity::cosine},
          {"norm", engine::HeadSimilarity::norm},
          {"distance", engine::HeadSimilarity::distance},
          {"svd", engine::HeadSimilarity::svd}};
}

HeadMerges head_merges() {
  return {{"mean", engine::HeadMerge::mean},
          {"weighted", engine::HeadMerge::weighted},
          {"fitted", engine::HeadMerge::fitted},
          {"svd", engine::HeadMerge::svd}};
}

[[nodiscard]] engine::RegroupOptions options_from(const present::RegroupChoices& choices) {
  return {.num_key_value_heads = choices.kv_heads,
          .method = grouping_methods().at(choices.method),
          .similarity = head_similarities().at(choices.similarity),
          .merge = head_merges().at(choices.merge),
          .compared = compared_heads().at(choices.compared),
          .error = lost_errors().at(choices.error),
          .search = {.seed = choices.seed}};
}

[[nodiscard]] std::vector<TokenId> calibration_ids(const present::RegroupChoices& choices,
                                                   const std::filesystem::path& model) {
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

[[nodiscard]] std::vector<engine::HeadStatistics> calibrate_heads(const present::RegroupChoices& choices,
                                                                  const engine::ModelWeights& weights,
                                                                  const std::vector<TokenId>& ids) {
  if (ids.empty()) return {};
  ProgressBar progress;
  engine::TextRun run;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  run.num_threads = choices.num_threads > 0 ? choices.num_threads : cores;
  run.on_progress = [&](double share) { progress.update("comparing heads", share); };
  try {
    return engine::observe_heads(weights, ids, run, options_from(choices).second_moments());
  } catch (const InputError& error) {
    throw InputError(choices.calibration, error.what());
  }
}

// What can be refused from config.json alone is, before weights are loaded.
void require_regroupable(const std::filesystem::path& model, const present::RegroupChoices& choices) {
  const std::string config = (model / "config.json").string();
  if (JsonFields(config, read_model_text(config)).has("quantization_config"))
    throw InputError(config, "the checkpoint is quantized and cannot be regrouped; regroup the one it was made from");
  engine::ModelWeights names;
  names.shape = read_model_shape(model);
  engine::require_tensor_names(names.shape);
  engine::require_mergeable_heads(names.shape);
  const engine::RegroupOptions options = options_from(choices);
  try {
    engine::require_possible(names.shape, options);
  } catch (const InputError& error) {
    throw InputError("--kv-heads", error.what());
  }
  if (options.method != engine::GroupingMethod::qcqa)
    (void)engine::config_with_heads(model, with_kv_heads(names.shape, choices.kv_heads));
}

// Options that do nothing beside the others.
void refuse_idle_options(const CLI::App& command, const present::RegroupChoices& choices) {
  for (const char* option : {"--error", "--seed"})
    refuse_idle(command, option, choices.method != "qcqa", "with --method " + choices.method);
  for (const char* option : {"--similarity", "--compare", "--calibration-tokens"})
    refuse_idle(command, option, choices.calibration.empty(), "without --calibration");
}

void run_regroup(const CLI::App& command, const present::RegroupChoices& choices) {
  const engine::RegroupOptions options = options_from(choices);
  if (options.needs_calibration() && choices.calibration.empty())
    throw InputError("--calibration is missing: heads are compared, and weighted, on text; name a text file");
  refuse_idle_options(command, choices);
  if (options.compared != engine::ComparedHeads::key_value && options.similarity == engine::HeadSimilarity::svd)
    throw InputError("--similarity svd is of K and V; with --compare " + choices.compared +
                     " use cosine, norm or distance");
  const std::filesystem::path model = study::find_model(choices.model);
  require_regroupable(model, choices);
  engine::require_new_folder(choices.folder);
  (void)engine::companion_files(model);  // refused now rather than after the work
  std::vector<TokenId> ids;
  if (!choices.calibration.empty()) ids = calibration_ids(choices, model);
  const engine::ModelWeights weights = engine::load_weights(model);
  const engine::Regrouping result = engine::regroup(weights, options, calibrate_heads(choices, weights, ids));
  engine::write_model(choices.folder, result.weights, model);
  present::show(present::regroup_report(choices, weights.shape, result, ids.size()), choices.output);
}

// How heads are compared, and made one.
void add_comparison_options(CLI::App& command, present::RegroupChoices& choices) {
  command.add_option("--similarity", choices.similarity, "Of heads, over the calibration text")
      ->check(CLI::IsMember(head_similarities()))
      ->option_text("cosine|norm|distance|svd [cosine]");
  command.add_option("--compare", choices.compared, "What of heads: K and V, query heads, or their outputs")
      ->check(CLI::IsMember(compared_heads()))
      ->option_text("kv|query|output [kv]");
  command.add_option("--error", choices.error, "Of qcqa: of K and V weights, on the text, or of a merge by SVD")
      ->check(CLI::IsMember(lost_errors()))
      ->option_text("weights|activations|svd [svd with --merge svd, else weights]");
  command.add_option("--seed", choices.seed, "Of qcqa's search");
  command
      .add_option("--merge", choices.merge,
                  "mean; weighted: by what heads add to the residual; fitted: weights that lose least; svd: what "
                  "loses least, Q and O following")
      ->check(CLI::IsMember(head_merges()))
      ->option_text("mean|weighted|fitted|svd [mean]");
}

}  // namespace

void add_regroup(CLI::App& app) {
  CLI::App* command = app.add_subcommand("regroup", "Make a model with fewer KV heads: MHA to GQA or MQA");
  auto choices = std::make_shared<present::RegroupChoices>();
  reads(command->add_option("--model", choices->model, "Hugging Face folder, or a name under scenarios/models"),
        study::try_find_model)
      ->required();
  command
      ->add_option("--kv-heads", choices->kv_heads,
                   "KV heads to have, a divisor of the model's; qcqa: on average, at most")
      ->required();
  command
      ->add_option(
          "--method", choices->method,
          "mean: neighbours become one; similarity: similar heads; key-norm: neighbours, by the norms of keys; "
          "qcqa: groups of any sizes that lose least, layers may differ")
      ->required()
      ->check(CLI::IsMember(grouping_methods()))
      ->option_text("mean|similarity|key-norm|qcqa REQUIRED");
  add_comparison_options(*command, *choices);
  reads(command->add_option("--calibration", choices->calibration, "Text to compare heads on"))
      ->option_text("TEXT_FILE");
  command->add_option("--calibration-tokens", choices->calibration_tokens, "Tokens of it to read at most")
      ->check(at_least(static_cast<int>(kFewestTokens)));
  command->add_option("--threads", choices->num_threads, "Worker threads, 0 = all cores")->check(thread_count());
  writes(command->add_option("--output", choices->folder, "The new model folder, made whole or not at all"))
      ->required()
      ->option_text("FOLDER REQUIRED");
  add_format_option(*command, choices->output);
  command->callback([choices, command] {
    if (choices->error.empty()) choices->error = choices->merge == "svd" ? "svd" : "weights";
    run_regroup(*command, *choices);
  });
}

}  // namespace dculab::cli
