// `dculab study`: the question of a scenario file, predicted and, with --measure, also run on this machine.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/host_machine.hpp"
#include "cli/locate.hpp"
#include "cli/measured_study.hpp"
#include "cli/output.hpp"
#include "cli/predicted_study.hpp"
#include "cli/progress.hpp"
#include "cli/resolve.hpp"
#include "config/machine_file.hpp"
#include "config/text_output.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "engine/probe/probe.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kHost = "host";

struct StudyChoices {
  std::string scenario;
  bool measure = false;
  std::string host_file;     // probed before; empty: probe now
  std::string trace_file;    // written
  std::string machine_file;  // calibrated host, written
  std::vector<std::string> set;
  OutputOptions output;
};

[[nodiscard]] config::Scenario read(const std::string& file, const std::vector<std::string>& set) {
  std::vector<config::Override> overrides;
  for (const std::string& change : set) overrides.push_back(config::parse_override(change));
  return config::read_scenario_file(file, overrides);
}

[[nodiscard]] sim::Machine probe_this_machine(int threads, ProgressBar& bar) {
  return to_machine(engine::probe_host(
      {.mode = engine::ProbeMode::quick, .threads = threads, .progress = [&bar](std::string_view label, double share) {
         bar.update("probing: " + std::string(label), share);
       }}));
}

void measure(const config::Scenario& scenario, const StudyChoices& choices, Report& report) {
  ProgressBar bar;
  const sim::Machine host = choices.host_file.empty() ? probe_this_machine(scenario.measure.threads, bar)
                                                      : resolve_machine(choices.host_file);
  const MeasuredStudy study = measure_study(scenario, host, report, bar);
  if (!choices.trace_file.empty())
    config::write_file_atomically(choices.trace_file, config::trace_json_lines(study.trace));
  if (!choices.machine_file.empty())
    config::write_file_atomically(choices.machine_file, config::machine_yaml(study.machine));
}

[[nodiscard]] bool names_host(const config::Scenario& scenario) {
  return std::find(scenario.machines.begin(), scenario.machines.end(), kHost) != scenario.machines.end();
}

// The scenarios that `then` names, beside the first one's file or among the shipped ones.
void study_followers(const config::Scenario& scenario, Report& report) {
  for (const std::string& follower : scenario.then) {
    const std::filesystem::path beside = std::filesystem::path(scenario.file).parent_path() / follower;
    const config::Scenario next = read(std::filesystem::exists(beside) ? beside : find_scenario(follower), {});
    refuse_unsupported(next);
    Report part{"", {}, {}, Json::object()};
    predict_study(next, part);
    if (part.tables.empty()) continue;
    part.tables.front().title = "Then: " + next.question + "\n\n" + part.tables.front().title;
    for (Table& table : part.tables) report.tables.push_back(std::move(table));
    part.json["question"] = next.question;
    report.json["then"].push_back(std::move(part.json));
  }
}

[[nodiscard]] Report study(const StudyChoices& choices) {
  if (!choices.measure && !(choices.trace_file.empty() && choices.machine_file.empty()))
    throw InputError("--trace and --machine-file are written by a study that measures; add --measure");
  const config::Scenario scenario = read(find_scenario(choices.scenario), choices.set);
  refuse_unsupported(scenario);
  Report report{"dculab/study/1", {scenario.question}, {}, Json{{"question", scenario.question}}};
  if (choices.measure)
    measure(scenario, choices, report);
  else if (names_host(scenario) && choices.host_file.empty())
    throw InputError(scenario.file, "machine: host is this machine, which has no file; add --measure, or " +
                                        std::string("--host FILE with what `dculab probe --machine-file` wrote"));
  else if (names_host(scenario))
    predict_study_on(scenario, resolve_machine(choices.host_file), report);
  else
    predict_study(scenario, report);
  study_followers(scenario, report);
  return report;
}

}  // namespace

void add_study(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Answer the question of a scenario file");
  auto choices = std::make_shared<StudyChoices>();
  command->add_option("scenario", choices->scenario, "Scenario file, or a name under scenarios")->required();
  command->add_flag("--measure", choices->measure,
                    "Also run the sweep on this machine: calibrate on half, score the rest");
  command->add_option("--host", choices->host_file, "Machine file of this host, instead of probing now");
  add_output_file(*command, "--trace", choices->trace_file, "With --measure: write the trace here");
  add_output_file(*command, "--machine-file", choices->machine_file,
                  "With --measure: write the calibrated machine here");
  command->add_option("--set", choices->set, "key=value: override any scenario key")->option_text("KEY=VALUE ...");
  add_output_options(*command, choices->output);
  command->callback([choices] { show(study(*choices), choices->output); });
}

}  // namespace dculab::cli
