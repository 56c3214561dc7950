#include "study/measure/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/sampling/token_distribution.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "study/evaluate/kv_bytes.hpp"
#include "study/measure/evaluation_material.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

constexpr int kLongestDefaultWindow = 4096;  // the logits of a reference grow with it
constexpr int kDefaultDecodeContext = 512;
constexpr double kMostReferenceLogits = 1U << 30U;  // values: 4 GiB
constexpr double kMemoryShareBesideReference = 0.45;

// Of all models, so that all are judged alike.
[[nodiscard]] int shortest_context(const EvaluationQuestion& question) {
  int shortest = std::numeric_limits<int>::max();
  std::vector<std::string> models = question.models;
  if (!question.tasks.reference.empty()) models.push_back(question.tasks.reference);
  for (const std::string& model : models)
    shortest = std::min(shortest, read_model_shape(find_model(model)).max_position_embeddings);
  return shortest;
}

[[nodiscard]] engine::GeneratorOptions generator_options(const EvaluationQuestion& question, const EvaluationRow& row) {
  engine::GeneratorOptions options = question.generator;
  options.engine.kv_cache_dtype = row.kv_cache_dtype;
  options.engine.activations = row.activations;
  options.engine.kv_retention = row.retention;
  if (!question.tasks.reference.empty()) options.engine.gpu_memory_utilization = kMemoryShareBesideReference;
  if (const auto found = problems(options.engine); !found.empty()) throw InputError(found.front());
  return options;
}

// The engine refuses texts beyond max_position_embeddings; a user who changes that number in config.json gets what this
// gives: positions as they are, trained or not.
[[nodiscard]] std::unique_ptr<engine::Generator> open_generator(const std::string& model,
                                                                const EvaluationQuestion& question,
                                                                const engine::GeneratorOptions& options) {
  const std::filesystem::path folder = find_model(model);
  engine::ModelWeights weights = engine::load_weights(folder, options.weight_memory);
  int& positions = weights.shape.max_position_embeddings;
  positions = std::max(positions, question.max_position_embeddings);
  return std::make_unique<engine::Generator>(folder, std::move(weights), options);
}

// The model that others are held against: everything exact, K and V in the widest format the device has.
[[nodiscard]] std::unique_ptr<engine::Generator> open_reference(const EvaluationTasks& tasks,
                                                                const EvaluationQuestion& question) {
  if (tasks.reference.empty()) return nullptr;
  EvaluationRow row;
  row.kv_cache_dtype = question.generator.device.kind == engine::DeviceKind::cpu ? Dtype::f32 : Dtype::f16;
  auto reference = open_generator(tasks.reference, question, generator_options(question, row));
  if (static_cast<double>(tasks.window) * reference->shape().vocab_size > kMostReferenceLogits)
    throw InputError("--reference: the logits of a window of " + std::to_string(tasks.window) +
                     " tokens do not fit in memory; use a smaller --window");
  return reference;
}

[[nodiscard]] engine::TextEvaluation judge_text(engine::TokenScorer& scorer, engine::Generator* reference,
                                                const EvaluationTasks& tasks, int windows_at_once,
                                                const std::string& text, const engine::EvaluationProgress& progress) {
  const std::vector<TokenId> ids = scorer.generator().tokenizer().encode(text, engine::SpecialTokens::omit);
  if (ids.size() < 2) throw InputError(tasks.text_file, "has fewer than two tokens");
  std::unique_ptr<engine::TokenScorer> against;
  if (reference != nullptr) {
    if (reference->tokenizer().encode(text, engine::SpecialTokens::omit) != ids)
      throw InputError("--reference: " + tasks.reference + " cuts the text into other tokens");
    against = std::make_unique<engine::TokenScorer>(*reference, engine::ScoringMode::chunked);
  }
  engine::TextEvaluation result = engine::evaluate_text(
      scorer, against.get(), ids, {.window = tasks.window, .windows_at_once = windows_at_once}, progress);
  if (!std::isfinite(result.loss.mean())) throw InputError(engine::kPredictionsNotFinite);
  return result;
}

// What all rows are judged with.
struct Judging {
  const EvaluationQuestion& question;
  const EvaluationTasks& tasks;  // with window and contexts
  const EvaluationMaterial& material;
  engine::Generator* reference;  // null: none
  const engine::BenchProgress& progress;
};

// What the row keeps in memory.
void measure_bytes(EvaluationRow& row, const ModelShape& shape, const EngineOptions& options, int context) {
  row.num_attention_heads = shape.heads().num_attention_heads;
  row.num_key_value_heads = shape.heads().num_key_value_heads;
  row.weight_bytes = weight_footprint(shape, options.weights);
  row.kv_bytes_per_token = kv_bytes_per_token(shape, row.kv_cache_dtype);
  row.kv_bytes_per_sequence = kv_bytes_per_sequence(shape, options, context);
  row.kv_bytes_loaded = kv_bytes_loaded(shape, options, context);
}

void judge_row(EvaluationRow& row, const Judging& by) {
  const EvaluationTasks& tasks = by.tasks;
  const std::string label = row.model + ", KV " + std::string(name(row.kv_cache_dtype)) + ": ";
  const auto progress_of = [&](const std::string& what) {
    return [&by, text = label + what](double share) { by.progress(text, share); };
  };
  engine::GeneratorOptions options = generator_options(by.question, row);
  if (by.question.drafter) {
    options.engine.speculative_config = by.question.drafter->config;
    if (!by.question.drafter->model.empty()) options.speculative_model = find_model(by.question.drafter->model);
  }
  const auto generator = open_generator(row.model, by.question, options);
  engine::TokenScorer scorer(*generator, tasks.mode);
  if (!tasks.text_file.empty())
    row.text =
        judge_text(scorer, by.reference, tasks, by.question.windows_at_once, by.material.text, progress_of("text"));
  for (std::size_t index = 0; index < by.material.items.size(); ++index) {
    try {
      row.choices.push_back(
          engine::evaluate_choices(scorer, by.material.items[index], progress_of(tasks.question_files[index])));
    } catch (const InputError& error) {
      throw InputError(tasks.question_files[index], error.what());
    }
  }
  row.experts = generator->executor().take_expert_histogram();
  if (tasks.decode.steps > 0) row.decode_step = engine::median_decode_step(*generator, tasks.decode);
  if (by.question.drafter)
    row.speculation = engine::check_speculation(*generator, prompts_of(by.material, tasks.num_prompts),
                                                tasks.max_tokens, progress_of("drafts"));
  measure_bytes(row, generator->shape(), generator->engine_options(), tasks.decode.context);
}

// With the window and the contexts that the question leaves open.
[[nodiscard]] EvaluationTasks complete_tasks(const EvaluationQuestion& question) {
  EvaluationTasks tasks = question.tasks;
  tasks.context = shortest_context(question);
  const int context = std::max(tasks.context, question.max_position_embeddings);
  if (tasks.window == 0) tasks.window = std::min(context, kLongestDefaultWindow);
  if (tasks.decode.context == 0) tasks.decode.context = std::min(context / 2, kDefaultDecodeContext);
  return tasks;
}

}  // namespace

std::vector<EvaluationRow> evaluation_rows(const EvaluationQuestion& question) {
  std::vector<EvaluationRow> rows;
  for (const std::string& model : question.models) {
    const ModelShape shape = read_model_shape(find_model(model));
    std::vector<ActivationMode> activations = question.activations;
    std::erase_if(activations, [&](ActivationMode mode) { return !problem(mode, shape).empty(); });
    if (activations.empty()) activations = {ActivationMode::exact};
    for (const ActivationMode mode : activations)
      for (const KvRetention& retention : question.retentions)
        for (const Dtype dtype : question.kv_cache_dtypes) {
          EvaluationRow row;
          row.model = model;
          row.kv_cache_dtype = dtype;
          row.activations = mode;
          row.retention = retention;
          rows.push_back(row);
        }
  }
  return rows;
}

void refuse_unjudgeable(const EvaluationQuestion& question, const std::vector<EvaluationRow>& rows) {
  const EvaluationTasks& tasks = question.tasks;
  if (tasks.text_file.empty() && tasks.question_files.empty())
    throw InputError("there is nothing to judge: give --text FILE, --choices FILE, or both");
  const bool compares =
      tasks.num_prompts != EvaluationTasks().num_prompts || tasks.max_tokens != EvaluationTasks().max_tokens;
  if (compares && !question.drafter)
    throw InputError("--num-prompts, --max-tokens", "are of the comparison with and without drafts; add what drafts");
  if (question.drafter && question.drafter->config.rejection_sample_method == RejectionSampleMethod::synthetic)
    throw InputError("--rejection-sample-method", "synthetic gives other texts; use it with `dculab bench --workload`");
  if (!tasks.reference.empty() && tasks.text_file.empty())
    throw InputError("--reference: predictions are compared over a text; give --text FILE");
  for (const EvaluationRow& row : rows) {
    if (!differs_in_decodes(row.retention.policy)) continue;
    const KvPolicy& policy = kv_policy(row.retention.policy);
    const std::string option = "--kv-retention " + policy_text(row.retention.policy);
    if (tasks.mode != engine::ScoringMode::streamed)
      throw InputError(option +
                       (policy.has_budget ? ": decodes that load a part of the cache are judged"
                                          : ": a cache that drops tokens is judged") +
                       " token by token; add --stream");
    if (policy.has_budget && row.retention.kv_budget <= 0) throw InputError(option + ": give --kv-budget");
    if (policy.has_window && row.retention.window_tokens < 1 && row.retention.kv_budget <= 0)
      throw InputError(option + ": give --window-tokens");
  }
}

EvaluationAnswer evaluate_models(const EvaluationQuestion& question, const engine::BenchProgress& progress) {
  EvaluationAnswer answer{.tasks = {}, .rows = evaluation_rows(question)};
  refuse_unjudgeable(question, answer.rows);
  const EvaluationMaterial material = read_material(question.tasks.text_file, question.tasks.question_files);
  answer.tasks = complete_tasks(question);
  const std::unique_ptr<engine::Generator> reference = open_reference(answer.tasks, question);
  const Judging by{question, answer.tasks, material, reference.get(), progress};
  for (EvaluationRow& row : answer.rows) {
    EngineOptions options = question.generator.engine;
    options.kv_cache_dtype = row.kv_cache_dtype;
    options.kv_retention = row.retention;
    share_budget(options, read_model_shape(find_model(row.model)), answer.tasks.decode.context);
    row.retention = options.kv_retention;
    judge_row(row, by);
  }
  return answer;
}

}  // namespace dculab::study
