// `dculab evaluate`: what a model, a way to store it or a way to cache K and V costs in accuracy, and what it saves.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/speculation_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "core/kv/figures.hpp"
#include "present/measure/evaluation_report.hpp"
#include "present/output/show.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr int kMostPositions = 1 << 20;

struct EvaluateChoices {
  study::EvaluationQuestion question;
  std::vector<std::string> kv_cache_dtypes{"f16"};
  std::vector<std::string> activations{"exact"};
  std::vector<std::string> retentions{"all"};
  KvRetention retention_sizes;
  bool stream = false;
  std::string device = "cpu";
  std::string activation_dtype = "f16";
  SpeculationChoices speculation;
  present::OutputOptions output;
};

// Options that do nothing beside the others.
void refuse_idle_options(const CLI::App& command, const EvaluateChoices& choices) {
  const bool shares = choices.retention_sizes.window_tokens == 0;  // a budget sets what windows keep: share_budget
  refuse_idle_figures(command, choices.retentions, [shares](const KvPolicy& policy, const KvFigure& figure) {
    return counts(policy, figure) || (shares && policy.has_window && figure.counts == &KvPolicy::has_budget);
  });
  const bool has_text = !choices.question.tasks.text_file.empty();
  refuse_idle(command, "--window", !has_text, "without --text");
  refuse_idle(command, "--max-num-seqs", !has_text || !choices.stream, "without --text and --stream");
  refuse_idle(command, "--decode-batch", choices.question.tasks.decode.steps == 0, "with --decode-steps 0");
}

[[nodiscard]] study::EvaluationQuestion evaluation_question(const EvaluateChoices& choices) {
  study::EvaluationQuestion question = choices.question;
  question.activations.clear();
  for (const std::string& mode : choices.activations)
    question.activations.push_back(parse_option("--activations", mode, parse_activations));
  question.kv_cache_dtypes.clear();
  for (const std::string& dtype : choices.kv_cache_dtypes)
    question.kv_cache_dtypes.push_back(parse_kv_dtype_option("--kv-cache-dtype", dtype));
  question.retentions.clear();
  for (const std::string& policy : choices.retentions) {
    question.retentions.push_back(choices.retention_sizes);
    question.retentions.back().policy = parse_option("--kv-retention", policy, parse_policy);
  }
  if (choices.stream) question.tasks.mode = engine::ScoringMode::streamed;
  const SpeculativeConfig drafts = speculative_config(choices.speculation);
  if (choices.speculation.asked()) question.drafter = {drafts, choices.speculation.folder()};
  question.generator.device = parse_option("--device", choices.device, engine::parse_device);
  question.generator.engine.activation_dtype =
      parse_dtype_option("--activation-dtype", choices.activation_dtype, "f16 or f32");
  return question;
}

void run_evaluate(const EvaluateChoices& choices) {
  const study::EvaluationQuestion question = evaluation_question(choices);
  ProgressBar bar;
  const study::EvaluationAnswer answer = study::evaluate_models(question, bar.updates());
  bar.clear();
  present::show(present::evaluation_report(answer), choices.output);
}

void add_engine_options(CLI::App& command, EvaluateChoices& choices) {
  const auto add_axis = [&command](const char* option, std::vector<std::string>& values, const char* help) {
    command.add_option(option, values, help)->delimiter(',');
  };
  add_axis("--kv-cache-dtype", choices.kv_cache_dtypes, "Formats of K and V, one row each: f16,fp8_e4m3");
  add_axis("--activations", choices.activations, "exact; int8 of quantized models; bf16 of BF16 ones");
  add_axis("--kv-retention", choices.retentions,
           "Which tokens stay cached: all, window, sinks, heavy-hitters; critical-blocks: which are loaded");
  add_retention_figures(command, choices.retention_sizes);
  command.add_option("--block-size", choices.question.generator.engine.block_size,
                     "Tokens per KV block, power of two to 256");
  command.add_option("--device", choices.device,
                     "cpu; hip:N or cuda:N for a GPU; host-gpu runs the GPU kernels on the host, for checking");
  command.add_option("--activation-dtype", choices.activation_dtype, "GPU: f16 or f32");
  command.add_option("--threads", choices.question.generator.num_threads, "CPU: worker threads, 0 = all cores")
      ->check(thread_count());
  add_division_options(command, choices.question.generator.division);
}

// Of what is generated: for speed, and with drafts.
void add_generation_options(CLI::App& command, study::EvaluationTasks& tasks) {
  command.add_option("--decode-steps", tasks.decode.steps, "Steps of the speed measurement, 0 = none")
      ->check(between(0, kLongestContext));
  command.add_option("--decode-batch", tasks.decode.batch, "Sequences of the speed measurement")
      ->check(between(1, kLargestBatch));
  command.add_option("--decode-context", tasks.decode.context, "Cached tokens at the start of the speed measurement")
      ->check(between(1, kLongestContext));
  command.add_option("--num-prompts", tasks.num_prompts, "Prompts of the comparison with and without drafts")
      ->check(between(1, kLargestBatch));
  command.add_option("--max-tokens", tasks.max_tokens, "Tokens that the comparison generates after each prompt")
      ->check(between(1, kLongestContext));
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evaluate", "Measure perplexity, multiple choice, distance from a reference, size");
  auto choices = std::make_shared<EvaluateChoices>();
  study::EvaluationTasks& tasks = choices->question.tasks;
  reads(command->add_option("--model", choices->question.models,
                            "Folders, or names under scenarios/models; one row each"),
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
      ->add_option("--max-position-embeddings", choices->question.max_position_embeddings,
                   "Longest window, where it is longer than the model was made for")
      ->check(CLI::Range(1, kMostPositions));
  command->add_flag("--stream", choices->stream,
                    "Run token by token, as in decode; otherwise in chunks, as in prefill");
  command->add_option("--max-num-seqs", choices->question.windows_at_once, "With --stream: windows at the same time")
      ->check(CLI::Range(1, 256));
  add_generation_options(*command, tasks);
  add_engine_options(*command, *choices);
  add_speculation_options(*command, choices->speculation);
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab evaluate --model dculab-tiny --text text.txt --kv-cache-dtype f16,int8"});
  command->callback([choices, command] {
    refuse_idle_options(*command, *choices);
    run_evaluate(*choices);
  });
}

}  // namespace dculab::cli
