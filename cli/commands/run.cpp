// `dculab run`: generates text with the real engine.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/speculation_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "present/measure/completions_report.hpp"
#include "present/output/show.hpp"
#include "present/output/standard_output.hpp"
#include "study/measure/generated_text.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct RunChoices {
  study::TextQuestion question;
  std::string kv_retention = "all";
  std::string device = "cpu";
  std::string kv_cache_dtype = "f16";
  std::string activation_dtype = "f16";
  std::string activations = "exact";
  std::string kv_cache_memory;
  std::string swap_space;
  std::string prefix_eviction = "lru";
  SkipChoices skip;
  SpeculationChoices speculation;
  present::OutputOptions output;
};

// One prompt's text as it is generated. The prompt comes with the first of it: a refused one prints nothing.
class TextStream {
 public:
  explicit TextStream(const std::string& prompt) : prompt_(prompt) {}

  void add(std::string_view text) {
    if (!started_) present::print(prompt_);
    started_ = true;
    present::print(text);
  }
  void finish() { add("\n"); }

 private:
  const std::string& prompt_;
  bool started_ = false;
};

[[nodiscard]] Bytes parse_memory(const std::string& text) {
  const auto wanted = config::parse_quantity<Bytes>(text);
  if (wanted > engine::available_memory())
    throw InputError(text + " is more than the " + config::short_text(engine::available_memory()) +
                     " of memory that is available; ask for less");
  return wanted;
}

// A figure that does nothing is a slip.
void refuse_idle_options(const CLI::App& command, const RunChoices& choices) {
  refuse_idle_figures(command, {choices.kv_retention});
  const Dtype dtype = parse_kv_dtype_option("--kv-cache-dtype", choices.kv_cache_dtype);
  refuse_idle(command, "--kv-residual-tokens", !quantizes_together(dtype),
              "with --kv-cache-dtype " + choices.kv_cache_dtype);
}

[[nodiscard]] engine::GeneratorOptions generator_options(const RunChoices& choices) {
  engine::GeneratorOptions options = choices.question.generator;
  options.device = parse_option("--device", choices.device, engine::parse_device);
  options.engine.kv_cache_dtype = parse_kv_dtype_option("--kv-cache-dtype", choices.kv_cache_dtype);
  options.engine.activation_dtype = parse_dtype_option("--activation-dtype", choices.activation_dtype, "f16 or f32");
  options.engine.kv_retention.policy = parse_option("--kv-retention", choices.kv_retention, parse_policy);
  options.engine.kv_skip = parse_skip(choices.skip);
  options.engine.activations = parse_option("--activations", choices.activations, parse_activations);
  options.engine.prefix_eviction = parse_option("--prefix-eviction", choices.prefix_eviction, [&](const auto& text) {
    return parse_prefix_eviction(text, options.engine.enable_prefix_caching);
  });
  if (!choices.kv_cache_memory.empty())
    options.kv_cache_memory = parse_option("--kv-cache-memory", choices.kv_cache_memory, parse_memory);
  if (!choices.swap_space.empty()) {
    options.engine.preemption_mode = PreemptionMode::swap;
    options.engine.swap_space = parse_option("--swap-space", choices.swap_space, parse_memory);
  }
  set_speculation(choices.speculation, options);
  if (const auto found = problems(options.engine); !found.empty()) throw InputError(found.front());
  return options;
}

void run_engine(const RunChoices& choices) {
  study::TextQuestion question = choices.question;
  question.generator = generator_options(choices);
  const std::vector<std::string> prompts = study::read_prompts(question);
  const bool is_text = choices.output.format == present::Format::table;
  const bool streams = is_text && choices.output.file.empty() && prompts.size() == 1 && question.n == 1;
  TextStream stream(prompts.front());
  engine::OnText on_text;
  if (streams) on_text = [&stream](std::size_t, std::string_view text) { stream.add(text); };
  const study::GeneratedText text = study::generate_text(question, prompts, on_text);
  const bool is_batch = !question.prompts_file.empty();  // whose other texts are shown first
  if (!is_batch) study::refuse_unserved_prompts(question, text.generation);
  if (streams)
    stream.finish();
  else
    present::show(is_text ? present::text_report(text.prompts, text.generation)
                          : present::completions_report(text.prompts, text.generation),
                  choices.output);
  if (!text.generation.report.requests.empty()) std::cerr << present::serving_summary(text.generation.report) << '\n';
  if (is_batch) study::refuse_unserved_prompts(question, text.generation);
}

void add_sampling_options(CLI::App& command, study::TextQuestion& question) {
  command.add_option("--max-tokens", question.max_tokens, "Most tokens to generate")
      ->check(between(1, kLongestContext));
  command.add_option("--temperature", question.temperature, "0 = greedy")->check(at_least(0));
  command.add_option("--top-k", question.top_k, "Sample from the k most likely tokens, 0 = all")->check(at_least(0));
  command.add_option("--top-p", question.top_p, "Sample from the most likely tokens with probability p together")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", question.seed, "Same seed, same text, whatever else is in the batch");
  command.add_flag("--ignore-eos", question.ignore_eos, "Continue after the end-of-text token");
  command.add_option("--n", question.n, "Samples of each prompt, which is computed once")->check(CLI::Range(1, 1024));
}

void add_engine_options(CLI::App& command, RunChoices& choices) {
  engine::GeneratorOptions& generator = choices.question.generator;
  command.add_option("--device", choices.device,
                     "cpu; hip:N or cuda:N for a GPU; host-gpu runs the GPU kernels on the host, for checking");
  command.add_option("--threads", generator.num_threads, "CPU: worker threads, 0 = all cores")->check(thread_count());
  add_division_options(command, generator.division);
  command.add_option("--activation-dtype", choices.activation_dtype, "GPU: f16 or f32");
  command.add_option("--activations", choices.activations, kActivationsHelp);
  command.add_option("--block-size", generator.engine.block_size, "Tokens per KV block, power of two to 256");
  command.add_option("--kv-cache-dtype", choices.kv_cache_dtype, kv_dtypes_help());
  command.add_option("--kv-residual-tokens", generator.engine.kv_residual_tokens,
                     "kivi4, kivi2: newest tokens that stay in F16: 32, 64, 96 or 128");
  command.add_option("--kv-cache-memory", choices.kv_cache_memory, "Size of the KV cache")->option_text("\"2 GiB\"");
  command
      .add_option("--swap-space", choices.swap_space,
                  "Host memory for preempted sequences, which are then not recomputed")
      ->option_text("\"1 GiB\"");
}

// Which tokens are cached, and in what batches.
void add_cache_options(CLI::App& command, RunChoices& choices) {
  EngineOptions& engine = choices.question.generator.engine;
  command.add_flag("--enable-prefix-caching", engine.enable_prefix_caching,
                   "Prompts with a common prefix share its KV cache");
  command.add_option("--prefix-eviction", choices.prefix_eviction, kPrefixEvictionHelp);
  add_skip_options(command, choices.skip);
  command.add_option("--kv-retention", choices.kv_retention,
                     "Tokens that stay in the KV cache: all, window, sinks (StreamingLLM) or heavy-hitters (H2O); "
                     "critical-blocks (Quest): all stay, a decode loads some");
  add_retention_figures(command, engine.kv_retention);
  command.add_option("--max-num-seqs", engine.max_num_seqs, "Most sequences per step");
  command.add_option("--max-num-batched-tokens", engine.max_num_batched_tokens, "Most new tokens per step");
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Generate text with the engine");
  auto choices = std::make_shared<RunChoices>();
  reads(
      command->add_option("--model", choices->question.model, "Hugging Face folder, or a name under scenarios/models"),
      study::try_find_model)
      ->required();
  CLI::Option_group* source = command->add_option_group("what to continue");
  source->add_option("--prompt", choices->question.prompt, "The text to continue; streamed");
  reads(source->add_option("--prompts", choices->question.prompts_file,
                           "A file with one prompt per line; batched continuously"));
  source->require_option(1);
  add_sampling_options(*command, choices->question);
  add_engine_options(*command, *choices);
  add_cache_options(*command, *choices);
  add_speculation_options(*command, choices->speculation);
  add_output_options(*command, choices->output);
  command->callback([choices, command] {
    refuse_idle_options(*command, *choices);
    run_engine(*choices);
  });
}

}  // namespace dculab::cli
