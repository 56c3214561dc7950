// `dculab evaluate`: what a model, a way to store it or a way to cache K and V costs in accuracy, and what it saves.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/evaluation_choices.hpp"
#include "cli/scenario/evaluation_material.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/kv_bytes.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/sampling/sampler.hpp"
#include "fields/node.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"
#include "present/engine/evaluation_report.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr int kLongestDefaultWindow = 4096;  // the logits of a reference grow with it
constexpr int kDefaultDecodeContext = 512;
constexpr int kMostPositions = 1 << 20;
constexpr double kMostReferenceLogits = 1U << 30U;  // values: 4 GiB
constexpr double kMemoryShareBesideReference = 0.45;

// Of all models, so that all are judged alike.
[[nodiscard]] int shortest_context(const EvaluateChoices& choices) {
  int shortest = std::numeric_limits<int>::max();
  std::vector<std::string> models = choices.models;
  if (!choices.tasks.reference.empty()) models.push_back(choices.tasks.reference);
  for (const std::string& model : models)
    shortest = std::min(shortest, read_model_shape(study::find_model(model)).max_position_embeddings);
  return shortest;
}

[[nodiscard]] engine::GeneratorOptions generator_options(const EvaluateChoices& choices,
                                                         const present::EvaluationRow& row) {
  engine::GeneratorOptions options = choices.generator;
  options.device = parse_option("--device", choices.device, engine::parse_device);
  options.engine.activation_dtype = parse_dtype_option("--activation-dtype", choices.activation_dtype, "f16 or f32");
  options.engine.kv_cache_dtype = row.kv_cache_dtype;
  options.engine.activations = row.activations;
  options.engine.kv_retention = row.retention;
  if (!choices.tasks.reference.empty()) options.engine.gpu_memory_utilization = kMemoryShareBesideReference;
  if (const auto found = problems(options.engine); !found.empty()) throw InputError(found.front());
  return options;
}

// The engine refuses texts beyond max_position_embeddings; a user who changes that number in config.json gets what this
// gives: positions as they are, trained or not.
[[nodiscard]] std::unique_ptr<engine::Generator> open_model(const std::string& model, const EvaluateChoices& choices,
                                                            const engine::GeneratorOptions& options) {
  const std::filesystem::path folder = study::find_model(model);
  engine::ModelWeights weights = engine::load_weights(folder, options.weight_memory);
  int& positions = weights.shape.max_position_embeddings;
  positions = std::max(positions, choices.max_position_embeddings);
  return std::make_unique<engine::Generator>(folder, std::move(weights), options);
}

// Models, cache formats, activations and retention policies in all combinations. A model has rows for the activations
// that its weights go with, and at least the one for exact ones.
[[nodiscard]] std::vector<present::EvaluationRow> make_rows(const EvaluateChoices& choices) {
  std::vector<present::EvaluationRow> rows;
  for (const std::string& mode : choices.activations)
    (void)parse_option("--activations", mode, parse_activations);  // also where no model is quantized
  for (const std::string& model : choices.models) {
    const ModelShape shape = read_model_shape(study::find_model(model));
    std::vector<std::string> activations = choices.activations;
    std::erase_if(activations, [&](const std::string& mode) {
      return !problem(parse_option("--activations", mode, parse_activations), shape).empty();
    });
    if (activations.empty()) activations = {"exact"};
    for (const std::string& mode : activations)
      for (const std::string& policy : choices.retentions)
        for (const std::string& dtype : choices.kv_cache_dtypes) {
          present::EvaluationRow row;
          row.model = model;
          row.kv_cache_dtype = parse_kv_dtype_option("--kv-cache-dtype", dtype);
          row.activations = parse_option("--activations", mode, parse_activations);
          row.retention = choices.retention_sizes;
          row.retention.policy = parse_option("--kv-retention", policy, parse_policy);
          rows.push_back(row);
        }
  }
  return rows;
}

// The model that others are held against: everything exact, K and V in the widest format the device has.
[[nodiscard]] std::unique_ptr<engine::Generator> open_reference(const EvaluateChoices& choices) {
  if (choices.tasks.reference.empty()) return nullptr;
  present::EvaluationRow row;
  row.kv_cache_dtype = choices.device == "cpu" ? Dtype::f32 : Dtype::f16;
  auto reference = open_model(choices.tasks.reference, choices, generator_options(choices, row));
  if (static_cast<double>(choices.tasks.window) * reference->shape().vocab_size > kMostReferenceLogits)
    throw InputError("--reference: the logits of a window of " + std::to_string(choices.tasks.window) +
                     " tokens do not fit in memory; use a smaller --window");
  return reference;
}

[[nodiscard]] engine::TextEvaluation judge_text(engine::TokenScorer& scorer, engine::Generator* reference,
                                                const EvaluateChoices& choices, const std::string& text,
                                                const engine::EvaluationProgress& progress) {
  const std::vector<TokenId> ids = scorer.generator().tokenizer().encode(text, engine::SpecialTokens::omit);
  if (ids.size() < 2) throw InputError(choices.tasks.text_file, "has fewer than two tokens");
  std::unique_ptr<engine::TokenScorer> against;
  if (reference != nullptr) {
    if (reference->tokenizer().encode(text, engine::SpecialTokens::omit) != ids)
      throw InputError("--reference: " + choices.tasks.reference + " cuts the text into other tokens");
    against = std::make_unique<engine::TokenScorer>(*reference, engine::ScoringMode::chunked);
  }
  engine::TextEvaluation result =
      engine::evaluate_text(scorer, against.get(), ids,
                            {.window = choices.tasks.window, .windows_at_once = choices.windows_at_once}, progress);
  if (!std::isfinite(result.loss.mean())) throw InputError(engine::kPredictionsNotFinite);
  return result;
}

void judge(present::EvaluationRow& row, engine::Generator* reference, const EvaluateChoices& choices,
           const EvaluationMaterial& material, ProgressBar& bar) {
  const present::EvaluationTasks& tasks = choices.tasks;
  const std::string label = row.model + ", KV " + std::string(name(row.kv_cache_dtype)) + ": ";
  const auto show_on_bar = [&](const std::string& what) {
    return [&bar, text = label + what](double share) { bar.update(text, share); };
  };
  engine::GeneratorOptions options = generator_options(choices, row);
  set_speculation(choices.speculation, options);
  const auto opened = open_model(row.model, choices, options);
  engine::Generator& generator = *opened;
  engine::TokenScorer scorer(generator, tasks.mode);
  if (!tasks.text_file.empty()) row.text = judge_text(scorer, reference, choices, material.text, show_on_bar("text"));
  for (std::size_t index = 0; index < material.items.size(); ++index) {
    try {
      row.choices.push_back(
          engine::evaluate_choices(scorer, material.items[index], show_on_bar(tasks.question_files[index])));
    } catch (const InputError& error) {
      throw InputError(tasks.question_files[index], error.what());
    }
  }
  row.experts = generator.executor().take_expert_histogram();
  if (tasks.decode.steps > 0) row.decode_step = engine::median_decode_step(generator, tasks.decode);
  if (choices.speculation.asked())
    row.speculation = engine::check_speculation(generator, prompts_of(material, tasks.num_prompts), tasks.max_tokens,
                                                show_on_bar("drafts"));
  row.num_attention_heads = generator.shape().heads().num_attention_heads;
  row.num_key_value_heads = generator.shape().heads().num_key_value_heads;
  row.weight_bytes = weight_footprint(generator.shape(), generator.engine_options().weights);
  row.kv_bytes_per_token = kv_bytes_per_token(generator.shape(), row.kv_cache_dtype);
  row.kv_bytes_per_sequence =
      kv_bytes_per_sequence(generator.shape(), generator.engine_options(), tasks.decode.context);
  row.kv_bytes_loaded = kv_bytes_loaded(generator.shape(), generator.engine_options(), tasks.decode.context);
}

void run_evaluate(EvaluateChoices choices) {
  choices.tasks.mode = choices.stream ? engine::ScoringMode::streamed : engine::ScoringMode::chunked;
  std::vector<present::EvaluationRow> rows = make_rows(choices);
  refuse_unjudgeable(choices, rows);
  const EvaluationMaterial material = read_material(choices.tasks.text_file, choices.tasks.question_files);
  choices.tasks.context = shortest_context(choices);
  const int context = std::max(choices.tasks.context, choices.max_position_embeddings);
  if (choices.tasks.window == 0) choices.tasks.window = std::min(context, kLongestDefaultWindow);
  if (choices.tasks.decode.context == 0) choices.tasks.decode.context = std::min(context / 2, kDefaultDecodeContext);
  ProgressBar bar;
  const std::unique_ptr<engine::Generator> reference = open_reference(choices);
  for (present::EvaluationRow& row : rows) {
    EngineOptions options = choices.generator.engine;
    options.kv_cache_dtype = row.kv_cache_dtype;
    options.kv_retention = row.retention;
    share_budget(options, read_model_shape(study::find_model(row.model)), choices.tasks.decode.context);
    row.retention = options.kv_retention;
    judge(row, reference.get(), choices, material, bar);
  }
  bar.clear();
  present::show(present::evaluation_report(choices.tasks, rows), choices.output);
}

void add_engine_options(CLI::App& command, EvaluateChoices& choices) {
  const auto add_axis = [&command](const char* option, std::vector<std::string>& values, const char* help) {
    command.add_option(option, values, help)->delimiter(',');
  };
  add_axis("--kv-cache-dtype", choices.kv_cache_dtypes, "Formats of K and V, a row each: f16,fp8_e4m3");
  add_axis("--activations", choices.activations, "exact; int8 of quantized models; bf16 of BF16 ones");
  add_axis("--kv-retention", choices.retentions,
           "Which tokens stay cached: all, window, sinks, heavy-hitters; critical-blocks: which are loaded");
  add_retention_figures(command, choices.retention_sizes);
  command.add_option("--block-size", choices.generator.engine.block_size, "Tokens per KV block, power of two to 256");
  command.add_option("--device", choices.device,
                     "cpu; hip:N or cuda:N for a GPU; host-gpu runs the GPU kernels on the host, for checking");
  command.add_option("--activation-dtype", choices.activation_dtype, "GPU: f16 or f32");
  command.add_option("--threads", choices.generator.num_threads, "CPU: worker threads, 0 = all cores")
      ->check(thread_count());
  add_division_options(command, choices.generator.division);
}

// Of what is generated: for speed, and with drafts.
void add_generation_options(CLI::App& command, present::EvaluationTasks& tasks) {
  command.add_option("--decode-steps", tasks.decode.steps, "Steps of the speed measurement, 0 = none")
      ->check(between(0, kLongestContext));
  command.add_option("--decode-batch", tasks.decode.batch, "Sequences of the speed measurement")
      ->check(between(1, kLargestBatch));
  command.add_option("--decode-context", tasks.decode.context, "Tokens cached at its beginning")
      ->check(between(1, kLongestContext));
  command.add_option("--num-prompts", tasks.num_prompts, "Prompts of the comparison with and without drafts")
      ->check(between(1, kLargestBatch));
  command.add_option("--max-tokens", tasks.max_tokens, "Tokens that it generates after each")
      ->check(between(1, kLongestContext));
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("evaluate", "Perplexity, multiple choice, distance from a reference, size");
  auto choices = std::make_shared<EvaluateChoices>();
  present::EvaluationTasks& tasks = choices->tasks;
  reads(command->add_option("--model", choices->models, "Folders, or names under scenarios/models, a row each"),
        study::try_find_model)
      ->required()
      ->delimiter(',');
  reads(command->add_option("--text", tasks.text_file, "Judge by the perplexity of this text"))->option_text("FILE");
  reads(command->add_option("--choices", tasks.question_files, "Judge by these questions, in ARC's JSONL format"))
      ->delimiter(',')
      ->option_text("FILE ...");
  reads(command->add_option("--reference", tasks.reference, "Compare predictions with this model's, token by token"),
        study::try_find_model);
  command->add_option("--window", tasks.window, "Tokens that are judged together; default: the model's context")
      ->check(at_least(2));
  command
      ->add_option("--max-position-embeddings", choices->max_position_embeddings,
                   "Tokens that a window may have although the model was made for fewer")
      ->check(CLI::Range(1, kMostPositions));
  command->add_flag("--stream", choices->stream, "Token by token, as in decode; else in chunks, as in prefill");
  command->add_option("--max-num-seqs", choices->windows_at_once, "With --stream: windows at the same time")
      ->check(CLI::Range(1, 256));
  add_generation_options(*command, tasks);
  add_engine_options(*command, *choices);
  add_speculation_options(*command, choices->speculation);
  add_output_options(*command, choices->output);
  command->callback([choices, command] {
    refuse_idle_options(*command, *choices);
    run_evaluate(*choices);
  });
}

}  // namespace dculab::cli
