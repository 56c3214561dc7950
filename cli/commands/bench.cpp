// `dculab bench`: runs a grid of steps on the real engine and writes a trace, or serves conversations or a scenario.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/bench/step_grid.hpp"
#include "cli/bench/workload_choices.hpp"
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
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/measure/conversations_report.hpp"
#include "present/measure/served_scenario_report.hpp"
#include "present/measure/step_trace_report.hpp"
#include "study/measure/served_scenario.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/serving_scenario.hpp"

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

void bench_scenario(const BenchChoices& choices) {
  const SpeculationChoices& drafts = choices.speculation;
  study::ServedScenarioQuestion question;
  question.device = parse_option("--device", choices.device, engine::parse_device);
  question.scenario = study::read_serving_scenario(choices.workload.file, {.set = choices.set});
  question.threads = choices.options.threads;
  if (!choices.trace_file.empty()) question.op_timing = engine::OpTiming::on;
  if (drafts.asked()) question.drafter = {speculative_config(drafts), drafts.folder()};
  ProgressBar bar;
  const study::ServedScenario answer = study::serve_scenario(question, bar.updates());
  bar.clear();
  if (!choices.trace_file.empty())
    files::write_file_atomically(choices.trace_file, config::trace_json_lines(answer.trace));
  present::show(present::served_scenario_report(question.scenario.question, answer), choices.output);
}

void bench_conversations(const BenchChoices& choices) {
  const study::ConversationQuestion question =
      conversation_question(choices.workload, {.grid = choices.grid,
                                               .random_weights = choices.random_weights,
                                               .device = choices.device,
                                               .threads = choices.options.threads,
                                               .speculation = choices.speculation});
  ProgressBar bar;
  const study::ConversationAnswer answer = study::serve_conversations(question, bar.updates());
  bar.clear();
  present::show(present::conversations_report(question, answer), choices.output);
}

void bench_grid(const BenchChoices& choices) {
  study::StepGrid grid{.model = choices.grid.model,
                       .random_weights = choices.random_weights,
                       .steps = {},
                       .division = choices.grid.division,
                       .options = choices.options};
  grid.options.device = parse_option("--device", choices.device, engine::parse_device);
  grid.activations = parse_option("--activations", choices.grid.activations, parse_activations);
  grid.steps = grid_steps(choices.grid);
  ProgressBar bar;
  const Trace trace = study::measure_grid(grid, bar.updates());
  bar.clear();
  if (!choices.trace_file.empty()) files::write_file_atomically(choices.trace_file, config::trace_json_lines(trace));
  present::show(present::step_trace_report(trace), choices.output);
}

void run_bench(const BenchChoices& choices) {
  static_cast<void>(speculative_config(choices.speculation));
  if (choices.workload.file.empty() && choices.speculation.asked())
    throw InputError("speculation", "belongs to served requests; give them with --workload");
  if (names_scenario(choices.workload.file)) return bench_scenario(choices);
  if (!choices.workload.file.empty()) return bench_conversations(choices);
  bench_grid(choices);
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure a grid of steps or a workload on the engine");
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
  add_examples(*command, {"dculab bench --model dculab-tiny --batch 1,2,4 --context 64,128 --trace trace.jsonl"});
  command->callback([choices, command] {
    refuse_ignored(*command, *choices);
    run_bench(*choices);
  });
}

}  // namespace dculab::cli
