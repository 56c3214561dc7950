#include "cli/scenario/generator_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/memory/anonymous_memory.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] Bytes parse_memory(const std::string& text) {
  const auto wanted = config::parse_quantity<Bytes>(text);
  if (wanted > engine::available_memory())
    throw InputError(text + " is more than the " + config::short_text(engine::available_memory()) +
                     " of memory that is available; ask for less");
  return wanted;
}

// A figure that does nothing is a slip.
void refuse_idle_options(const CLI::App& command, const GeneratorChoices& choices) {
  refuse_idle_figures(command, {choices.kv_retention});
  const Dtype dtype = parse_kv_dtype_option("--kv-cache-dtype", choices.kv_cache_dtype);
  refuse_idle(command, "--kv-residual-tokens", !quantizes_together(dtype),
              "with --kv-cache-dtype " + choices.kv_cache_dtype);
}

void add_engine_options(CLI::App& command, GeneratorChoices& choices) {
  engine::GeneratorOptions& generator = choices.generator;
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
void add_cache_options(CLI::App& command, GeneratorChoices& choices) {
  EngineOptions& engine = choices.generator.engine;
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

void add_generator_options(CLI::App& command, GeneratorChoices& choices) {
  add_engine_options(command, choices);
  add_cache_options(command, choices);
  add_speculation_options(command, choices.speculation);
}

engine::GeneratorOptions generator_options(const CLI::App& command, const GeneratorChoices& choices) {
  refuse_idle_options(command, choices);
  engine::GeneratorOptions options = choices.generator;
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

}  // namespace dculab::cli
