#include "study/measure/regrouped_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "fields/json_fields.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"
#include "model/folder/model_files.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::vector<TokenId> calibration_ids(const RegroupQuestion& question,
                                                   const std::filesystem::path& model) {
  const auto tokenizer = engine::Tokenizer::load(model / "tokenizer.json");
  const std::string text = files::read_text(question.calibration, files::kLargestText);
  std::vector<TokenId> ids = tokenizer.encode(text, engine::SpecialTokens::omit);
  if (std::ssize(ids) < kFewestCalibrationTokens)
    throw InputError(question.calibration, "has only " + std::to_string(ids.size()) +
                                               " tokens, too few to compare heads; give at least " +
                                               std::to_string(kFewestCalibrationTokens));
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(question.calibration_tokens)));
  return ids;
}

[[nodiscard]] std::vector<engine::HeadStatistics> calibrate_heads(const RegroupQuestion& question,
                                                                  const engine::ModelWeights& weights,
                                                                  const std::vector<TokenId>& ids,
                                                                  const engine::BenchProgress& progress) {
  if (ids.empty()) return {};
  engine::TextRun run;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  run.num_threads = question.num_threads > 0 ? question.num_threads : cores;
  run.on_progress = [&](double share) { progress("comparing heads", share); };
  try {
    return engine::observe_heads(weights, ids, run, question.options.second_moments());
  } catch (const InputError& error) {
    throw InputError(question.calibration, error.what());
  }
}

// What can be refused from config.json alone is, before weights are loaded.
void require_regroupable(const std::filesystem::path& model, const RegroupQuestion& question) {
  const std::string config = (model / "config.json").string();
  if (JsonFields(config, read_model_text(config)).has("quantization_config"))
    throw InputError(config, "the checkpoint is quantized and cannot be regrouped; regroup the one it was made from");
  engine::ModelWeights names;
  names.shape = read_model_shape(model);
  engine::require_tensor_names(names.shape);
  engine::require_mergeable_heads(names.shape);
  const engine::RegroupOptions& options = question.options;
  try {
    engine::require_possible(names.shape, options);
  } catch (const InputError& error) {
    throw InputError("--kv-heads", error.what());
  }
  if (options.method != engine::GroupingMethod::qcqa)
    (void)engine::config_with_heads(model, with_kv_heads(names.shape, question.options.num_key_value_heads));
}

}  // namespace

void require_calibration(const RegroupQuestion& question) {
  if (question.options.needs_calibration() && question.calibration.empty())
    throw InputError("--calibration is missing: heads are compared, and weighted, on text; name a text file");
}

RegroupedFolder regroup_folder(const RegroupQuestion& question, const engine::BenchProgress& progress) {
  require_calibration(question);
  const engine::RegroupOptions& options = question.options;
  if (options.compared != engine::ComparedHeads::key_value && options.similarity == engine::HeadSimilarity::svd)
    throw InputError("--similarity svd is of K and V; with --compare " + std::string(name(options.compared)) +
                     " use cosine, norm or distance");
  const std::filesystem::path model = find_model(question.model);
  require_regroupable(model, question);
  engine::require_new_folder(question.folder);
  (void)engine::companion_files(model);  // refused now rather than after the work
  std::vector<TokenId> ids;
  if (!question.calibration.empty()) ids = calibration_ids(question, model);
  const engine::ModelWeights weights = engine::load_weights(model);
  RegroupedFolder made{.before = weights.shape,
                       .result = engine::regroup(weights, options, calibrate_heads(question, weights, ids, progress)),
                       .calibration_tokens = ids.size()};
  engine::write_model(question.folder, made.result.weights, model);
  return made;
}

}  // namespace dculab::study
