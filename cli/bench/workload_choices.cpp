#include "cli/bench/workload_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "core/error.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

// Of conversations, which are served with one.
[[nodiscard]] KvRetention retention_of(const GridChoices& grid) {
  if (grid.retentions.size() != 1) throw InputError("--kv-retention", "takes one policy for conversations");
  KvRetention retention = grid.retention_sizes;
  retention.policy = parse_option("--kv-retention", grid.retentions.front(), parse_policy);
  return retention;
}

[[nodiscard]] engine::GeneratorOptions generator_options(const WorkloadChoices& choices, const WorkloadSetting& setting,
                                                         int block_size, const std::string& kv_cache_dtype) {
  engine::GeneratorOptions options;
  options.device = parse_option("--device", setting.device, engine::parse_device);
  options.num_threads = setting.threads;
  options.division = setting.grid.division;
  options.engine.block_size = block_size;
  options.engine.kv_cache_dtype = parse_kv_dtype_option("--kv-cache-dtype", kv_cache_dtype);
  options.engine.activations = parse_option("--activations", setting.grid.activations, parse_activations);
  options.engine.kv_retention = retention_of(setting.grid);
  options.engine.max_num_seqs = choices.max_num_seqs;
  options.engine.max_num_batched_tokens = choices.max_num_batched_tokens;
  options.engine.enable_prefix_caching = choices.enable_prefix_caching;
  options.engine.prefix_eviction = parse_option("--prefix-eviction", choices.prefix_eviction, [&](const auto& text) {
    return parse_prefix_eviction(text, choices.enable_prefix_caching);
  });
  options.engine.kv_skip = parse_skip(choices.skip);
  set_speculation(setting.speculation, options);
  if (const auto found = problems(options.engine); !found.empty()) throw InputError(found.front());
  return options;
}

[[nodiscard]] engine::ReplicaChoices replica_choices(const WorkloadChoices& choices) {
  const auto parse = [](const std::string& text) {
    for (const Routing routing : {Routing::round_robin, Routing::random, Routing::least_requests, Routing::least_tokens,
                                  Routing::prefix_affinity})
      if (text == name(routing)) return routing;
    throw InputError("'" + text + "' is not a routing; use round_robin, random, least_requests, least_tokens or " +
                     "prefix_affinity");
  };
  const Routing routing = parse_option("--routing", choices.routing, parse);
  if (routing != Routing::round_robin && choices.data_parallel_size == 1)
    throw InputError("--routing", "does nothing with a single replica; add --data-parallel-size");
  return {.data_parallel_size = choices.data_parallel_size, .routing = routing};
}

void add_batching_options(CLI::App& command, WorkloadChoices& choices, CLI::Option* file) {
  command.add_option("--max-num-seqs", choices.max_num_seqs, "Workload: most sequences per step")
      ->check(at_least(1))
      ->needs(file);
  command.add_option("--max-num-batched-tokens", choices.max_num_batched_tokens, "Workload: most new tokens per step")
      ->check(at_least(1))
      ->needs(file);
  command
      .add_flag("--enable-prefix-caching", choices.enable_prefix_caching,
                "Workload: prompts with a common prefix share its KV cache")
      ->needs(file);
  command.add_option("--prefix-eviction", choices.prefix_eviction, kPrefixEvictionHelp)->needs(file);
  add_skip_options(command, choices.skip);
  for (const char* option : {"--kv-cache-skip", "--pad-token-id"}) command.get_option(option)->needs(file);
}

}  // namespace

void add_workload_options(CLI::App& command, WorkloadChoices& choices, std::vector<std::string>& set) {
  CLI::Option* file =
      reads(command.add_option("--workload", choices.file,
                               "Serve a scenario's requests, or conversations (ShareGPT's JSON), instead of a grid"),
            study::try_find_scenario)
          ->option_text("FILE");
  for (const char* option : {"--phase", "--batch", "--context", "--kv-heads", "--repeats", "--warm-up"})
    file->excludes(command.get_option(option));
  command.add_option("--set", set, "Scenario: key=value overrides any of its keys")
      ->option_text("KEY=VALUE ...")
      ->needs(file);
  command.add_option("--num-prompts", choices.num_prompts, "Workload: most conversations")
      ->check(at_least(1))
      ->needs(file);
  command.add_option("--seed", choices.seed, "Workload: seed that chooses and orders the conversations")->needs(file);
  add_batching_options(command, choices, file);
  command
      .add_option("--data-parallel-size", choices.data_parallel_size,
                  "Workload: replicas that share the CPU's cores and memory, each with its own KV cache")
      ->check(between(1, config::kMostThreads))
      ->needs(file);
  command
      .add_option("--routing", choices.routing,
                  "Workload: which replica takes a request: round_robin, random, least_requests, least_tokens or "
                  "prefix_affinity")
      ->needs(file);
}

study::ConversationQuestion conversation_question(const WorkloadChoices& choices, const WorkloadSetting& setting) {
  study::ConversationQuestion question{.file = choices.file,
                                       .num_prompts = choices.num_prompts,
                                       .seed = choices.seed,
                                       .model = setting.grid.model,
                                       .random_weights = setting.random_weights,
                                       .speculative_model = setting.speculation.model,
                                       .variants = {},
                                       .replicas = replica_choices(choices)};
  for (const int block_size : setting.grid.block_sizes)
    for (const std::string& dtype : setting.grid.kv_cache_dtypes)
      question.variants.push_back({dtype, generator_options(choices, setting, block_size, dtype)});
  return question;
}

}  // namespace dculab::cli
