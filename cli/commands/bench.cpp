// `dculab bench`: runs a grid of steps on the real engine and writes a trace, or serves conversations or a scenario.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/bench/scenario_bench.hpp"
#include "cli/bench/step_grid.hpp"
#include "cli/bench/workload_bench.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/engine_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "cli/scenario/speculation_choices.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/trace_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "engine/measure/step_bench.hpp"
#include "engine/parallel/ranked_executor.hpp"
#include "files/output.hpp"
#include "present/engine/expert_report.hpp"
#include "present/values/retention_json.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct BenchChoices {
  std::string random_weights;  // a dtype, or empty: the folder's own weights
  GridChoices grid;
  std::string device = "cpu";
  engine::BenchOptions options;
  std::string trace_file;
  WorkloadChoices workload;
  SpeculationChoices speculation;
  std::vector<std::string> set;  // of a scenario
  present::OutputOptions output;
};

[[nodiscard]] double tokens_per_second(const TraceStep& step) {
  return static_cast<double>(step.batch.num_tokens()) / step.duration.value();
}

[[nodiscard]] std::vector<present::Cell> row_of(const TraceStep& step) {
  const SequenceSlice& slice = step.batch.sequences.front();
  const auto batch = static_cast<double>(step.batch.sequences.size());
  return {slice.phase == Phase::decode ? "decode" : "prefill",
          std::to_string(step.model.heads().num_key_value_heads),
          std::to_string(step.options.block_size),
          std::string(name(step.options.kv_cache_dtype)),
          std::to_string(slice.context_tokens()),
          present::Cell(present::number(batch), batch),
          present::Cell(config::short_text(step.duration), step.duration.value()),
          present::Cell(config::short_text(step.spread), step.spread.value()),
          present::Cell(present::number(tokens_per_second(step)), tokens_per_second(step))};
}

[[nodiscard]] present::Json json_of(const TraceStep& step) {
  const SequenceSlice& slice = step.batch.sequences.front();
  const bool decode = slice.phase == Phase::decode;
  return {{"id", step.id},
          {"phase", decode ? "decode" : "prefill"},
          {"num_key_value_heads", step.model.heads().num_key_value_heads},
          {"block_size", step.options.block_size},
          {"kv_cache_dtype", name(step.options.kv_cache_dtype)},
          {"context_tokens", slice.context_tokens()},
          {"batch", static_cast<double>(step.batch.sequences.size())},
          {"step_seconds", step.duration.value()},
          {"spread_seconds", step.spread.value()},
          {decode ? "decode_tokens_per_second" : "prefill_tokens_per_second", tokens_per_second(step)}};
}

[[nodiscard]] present::Report make_report(const Trace& trace) {
  present::Report report{"dculab/bench/1", {}, {}, present::Json::object()};
  report.heading = {trace.header.device + ", " + trace.header.build, trace.header.timing};
  present::Table table;
  table.columns = {"phase", "KV heads", "block", "KV dtype", "context", "batch", "step", "± spread", "tokens/s"};
  const bool retains = std::ranges::any_of(
      trace.steps, [](const TraceStep& step) { return step.options.kv_retention.policy != RetentionPolicy::all; });
  if (retains) table.columns.emplace_back("KV kept");
  const bool mixture = std::ranges::any_of(trace.steps, [](const auto& step) { return !step.experts.is_empty(); });
  if (mixture) {
    report.heading.push_back(present::expert_heading());
    for (const std::string& column : present::expert_columns()) table.columns.push_back(column);
  }
  report.json["points"] = present::Json::array();
  for (const TraceStep& step : trace.steps) {
    table.rows.push_back(row_of(step));
    report.json["points"].push_back(json_of(step));
    if (retains) {
      table.rows.back().emplace_back(retention_text(step.options.kv_retention));
      report.json["points"].back()["kv_retention"] = present::retention_json(step.options.kv_retention);
    }
    if (!mixture) continue;
    for (present::Cell& cell : present::expert_cells(step.experts)) table.rows.back().push_back(std::move(cell));
    report.json["points"].back()["experts"] = present::expert_json(step.experts);
  }
  report.tables.push_back(std::move(table));
  return report;
}

// Of conversations, which are served with one.
[[nodiscard]] KvRetention retention_of(const BenchChoices& choices) {
  if (choices.grid.retentions.size() != 1) throw InputError("--kv-retention", "takes one policy for conversations");
  KvRetention retention = choices.grid.retention_sizes;
  retention.policy = parse_option("--kv-retention", choices.grid.retentions.front(), parse_policy);
  return retention;
}

[[nodiscard]] bool names_scenario(const std::string& workload) {
  return !workload.empty() && std::filesystem::path(workload).extension() != ".json";
}

// A scenario says itself what these options say of conversations, and nothing of a grid has a trace of its own.
void refuse_ignored(const CLI::App& command, const BenchChoices& choices) {
  const std::string& file = choices.workload.file;
  if (file.ends_with(".csv"))
    throw InputError("--workload", file + " is a trace of requests; give a scenario with workload: {file: " + file +
                                       ", arrival: replay}");
  const bool scenario = names_scenario(choices.workload.file);
  const auto given = [&command](const char* option) { return command.get_option(option)->count() > 0; };
  std::vector<const char*> said{"--model",
                                "--random-weights",
                                "--block-size",
                                "--kv-cache-dtype",
                                "--kv-retention",
                                "--activations",
                                "--num-prompts",
                                "--seed",
                                "--max-num-seqs",
                                "--max-num-batched-tokens",
                                "--enable-prefix-caching",
                                "--prefix-eviction",
                                "--kv-cache-skip",
                                "--pad-token-id",
                                "--data-parallel-size",
                                "--routing",
                                "--tensor-parallel-size",
                                "--enable-expert-parallel"};
  for (const KvFigure& figure : kKvFigures) said.push_back(option_of(figure));
  for (const char* option : said)
    if (scenario && given(option))
      throw InputError(option, "is said by the scenario " + choices.workload.file + "; give --set KEY=VALUE");
  refuse_idle_figures(command, choices.grid.retentions);
  if (!scenario && given("--set")) throw InputError("--set", "changes a scenario; give one with --workload");
  if (!scenario && !choices.workload.file.empty() && given("--trace"))
    throw InputError("--trace", "is not written of conversations; leave it or --workload out");
  if (!scenario && !given("--model"))
    throw InputError("--model", "is missing: a folder, or a name under scenarios/models");
}

void run_bench(BenchChoices choices) {
  static_cast<void>(speculative_config(choices.speculation));
  if (choices.workload.file.empty() && choices.speculation.asked())
    throw InputError("speculation", "belongs to served requests; give them with --workload");
  if (names_scenario(choices.workload.file))
    return present::show(bench_scenario({.scenario = choices.workload.file,
                                         .set = choices.set,
                                         .device = parse_option("--device", choices.device, engine::parse_device),
                                         .threads = choices.options.threads,
                                         .trace_file = choices.trace_file,
                                         .speculation = choices.speculation}),
                         choices.output);
  if (!choices.workload.file.empty())
    return present::show(bench_workload(choices.workload, {.model = choices.grid.model,
                                                           .random_weights = choices.random_weights,
                                                           .device = choices.device,
                                                           .threads = choices.options.threads,
                                                           .division = choices.grid.division,
                                                           .activations = choices.grid.activations,
                                                           .block_sizes = choices.grid.block_sizes,
                                                           .kv_cache_dtypes = choices.grid.kv_cache_dtypes,
                                                           .retention = retention_of(choices),
                                                           .speculation = choices.speculation}),
                         choices.output);
  choices.options.device = parse_option("--device", choices.device, engine::parse_device);
  engine::require_shared_device(choices.options.device, choices.grid.division);
  const std::filesystem::path folder = study::find_model(choices.grid.model);
  const engine::ModelWeights weights = study::load_or_make_weights(folder, choices.random_weights);
  const std::vector<engine::BenchPoint> points = make_grid(choices.grid, weights.shape, choices.options.device.kind);
  ProgressBar bar;
  const Trace trace = engine::measure_steps(weights, points, choices.options,
                                            [&bar](const auto& label, double share) { bar.update(label, share); });
  bar.clear();
  if (!choices.trace_file.empty()) files::write_file_atomically(choices.trace_file, config::trace_json_lines(trace));
  present::show(make_report(trace), choices.output);
}

// What a grid has and a workload does not is refused with it, and the other way round.
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
  command.add_option("--num-prompts", choices.num_prompts, "Workload: conversations at most")
      ->check(at_least(1))
      ->needs(file);
  command.add_option("--seed", choices.seed, "Workload: which, and in what order")->needs(file);
  command.add_option("--max-num-seqs", choices.max_num_seqs, "Workload: sequences per step at most")
      ->check(at_least(1))
      ->needs(file);
  command
      .add_option("--max-num-batched-tokens", choices.max_num_batched_tokens, "Workload: new tokens per step at most")
      ->check(at_least(1))
      ->needs(file);
  command
      .add_flag("--enable-prefix-caching", choices.enable_prefix_caching,
                "Workload: prompts that begin alike share what has been computed")
      ->needs(file);
  command.add_option("--prefix-eviction", choices.prefix_eviction, kPrefixEvictionHelp)->needs(file);
  add_skip_options(command, choices.skip);
  for (const char* option : {"--kv-cache-skip", "--pad-token-id"}) command.get_option(option)->needs(file);
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

// The axes of the grid.
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

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Run a grid of steps or a workload on the real engine");
  auto choices = std::make_shared<BenchChoices>();
  reads(command->add_option("--model", choices->grid.model, "Model folder, or a name under scenarios/models"),
        study::try_find_model);
  command->add_option(
      "--random-weights", choices->random_weights,
      "Weights made on the spot in f32, f16, bf16, fp8, int8 or int4: speed does not depend on their values");
  add_grid_options(*command, choices->grid);
  command->add_option("--device", choices->device,
                      "cpu; hip:N or cuda:N for a GPU; host-gpu runs the GPU kernels on the host, for checking");
  command->add_option("--activations", choices->grid.activations, kActivationsHelp);
  command->add_option("--threads", choices->options.threads, "CPU: worker threads, 0 = all cores")
      ->check(thread_count());
  add_division_options(*command, choices->grid.division);
  command->add_option("--repeats", choices->options.repeats, "Rounds through the grid")
      ->check(between(1, config::kMostRepeats));
  command->add_option("--warm-up", choices->options.warm_up, "Untimed steps before each timed one")
      ->check(between(0, config::kMostRepeats));
  add_output_file(*command, "--trace", choices->trace_file, "Write the trace here (JSON Lines)");
  add_workload_options(*command, choices->workload, choices->set);
  add_speculation_options(*command, choices->speculation);
  add_output_options(*command, choices->output);
  command->callback([choices, command] {
    refuse_ignored(*command, *choices);
    run_bench(*choices);
  });
}

}  // namespace dculab::cli
