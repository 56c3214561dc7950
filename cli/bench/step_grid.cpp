#include "cli/bench/step_grid.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/yaml_writer.hpp"

namespace dculab::cli {
namespace {

// As keys of a scenario, where a policy is asked for.
[[nodiscard]] std::vector<std::string> retention_keys(const std::string& policy, const KvRetention& sizes) {
  const RetentionPolicy asked = parse_option("--kv-retention", policy, parse_policy);
  if (asked == RetentionPolicy::all) return {};
  std::vector<std::string> set{"kv_cache.retention=" + std::string(name(asked))};
  for (const KvFigure& figure : kKvFigures) {
    const std::string key = "kv_cache." + std::string(figure.name) + "=";
    if (figure.share != nullptr && sizes.*figure.share > 0)
      set.push_back(key + config::figure_text(sizes.*figure.share));
    if (figure.count != nullptr && sizes.*figure.count > 0)
      set.push_back(key + config::figure_text(sizes.*figure.count));
  }
  return set;
}

// Steps of one phase, number of KV heads (0: the model's own) and way to keep K and V.
void add_steps(const GridChoices& choices, study::StepQuestion step, std::vector<study::GridStep>& steps) {
  for (const int context : choices.contexts)
    for (const int batch : choices.batches) {
      step.context = context;
      step.batch = batch;
      steps.push_back({study::step_scenario(step), step.kv_cache_dtype});
    }
}

}  // namespace

void add_grid_options(CLI::App& command, GridChoices& grid) {
  command.add_option("--phase", grid.phases, "prefill, decode")
      ->delimiter(',')
      ->check(CLI::IsMember({"prefill", "decode"}));
  const auto add_axis = [&command](const char* option, std::vector<int>& values, const char* help) {
    command.add_option(option, values, help)->delimiter(',')->check(at_least(1));
  };
  add_axis("--batch", grid.batches, "Sequences per step");
  add_axis("--context", grid.contexts, "Tokens per sequence");
  add_axis("--kv-heads", grid.kv_heads, "KV heads, made by mean pooling");
  add_axis("--block-size", grid.block_sizes, "Tokens per KV block");
  command.add_option("--kv-cache-dtype", grid.kv_cache_dtypes, kv_dtypes_help())->delimiter(',');
  command
      .add_option("--kv-retention", grid.retentions,
                  "all, window, sinks, heavy-hitters, critical-blocks: a point each, with the same figures")
      ->delimiter(',');
  add_retention_figures(command, grid.retention_sizes);
}

std::vector<study::GridStep> grid_steps(const GridChoices& choices) {
  std::vector<study::GridStep> steps;
  const std::vector<int> all_kv_heads = choices.kv_heads.empty() ? std::vector<int>{0} : choices.kv_heads;
  for (const std::string& phase : choices.phases)
    for (const int kv_heads : all_kv_heads)
      for (const int block_size : choices.block_sizes)
        for (const std::string& kv_cache_dtype : choices.kv_cache_dtypes)
          for (const std::string& retention : choices.retentions)
            add_steps(choices,
                      {.model = choices.model,
                       .machine = "host",
                       .phase = phase,
                       .block_size = block_size,
                       .kv_heads = kv_heads,
                       .kv_cache_dtype = kv_cache_dtype,
                       .weights = "",
                       .set = retention_keys(retention, choices.retention_sizes)},
                      steps);
  return steps;
}

}  // namespace dculab::cli
