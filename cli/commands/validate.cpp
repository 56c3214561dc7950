// `dculab validate`: predicted against measured, for published points, served runs and traces.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/file_options.hpp"
#include "core/error.hpp"
#include "present/study/served_report.hpp"
#include "present/study/validation_report.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/validate/point_scores.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kExperiment = "experiment";  // left out of served runs

struct ValidateChoices {
  std::vector<std::string> traces;
  std::string machine;
  std::vector<std::string> points;
  std::vector<std::string> calibrate_on;
  std::string serving;
  study::ServedChoices served;
  std::vector<std::string> leave_one_out;
  int worst = 0;
  present::OutputOptions output;
};

[[nodiscard]] study::Validation validate(const ValidateChoices& choices) {
  if (!choices.points.empty()) return study::validate_points(choices.points, choices.calibrate_on);
  if (choices.traces.empty())
    throw InputError("nothing to validate; give --points FILE, --serving FILE, or trace files with --machine");
  if (choices.machine.empty()) throw InputError("--machine: a trace is predicted on a machine; name it");
  return study::validate_traces(choices.traces, study::resolve_machine(choices.machine));
}

[[nodiscard]] present::Report leave_out(const ValidateChoices& choices) {
  study::PointSet set = study::read_point_set(choices.points);
  const study::Scores left_out_rows = study::left_out_points(set);
  std::vector<present::LeftOutGroup> groups;
  for (const std::string& by : choices.leave_one_out) {
    present::LeftOutGroup& group = groups.emplace_back();
    group.by = by;
    group.points = study::predict_left_out(set, by, &group.effects);
  }
  return present::left_out_report(left_out_rows, std::move(groups));
}

[[nodiscard]] present::Report validate_serving(const ValidateChoices& choices) {
  const auto figures = config::read_serving_runs_file(choices.serving);
  if (choices.leave_one_out.empty())
    return present::served_report(study::validate_served(figures, choices.served), choices.served);
  return present::served_left_out_report(study::leave_experiments_out(figures, choices.served), choices.served);
}

// Which groups can be left out depends on what is validated.
void check_left_out(const ValidateChoices& choices) {
  if (choices.leave_one_out.empty()) return;
  const bool of_runs = std::ranges::find(choices.leave_one_out, kExperiment) != choices.leave_one_out.end();
  if (choices.points.empty() && choices.serving.empty())
    throw InputError("--leave-one-out: give --points FILE or --serving FILE");
  if (choices.serving.empty() ? of_runs : !of_runs || choices.leave_one_out.size() > 1)
    throw InputError("--leave-one-out: experiment needs --serving, and --serving takes no other group");
}

[[nodiscard]] present::Report validated(const ValidateChoices& choices) {
  check_left_out(choices);
  if (!choices.serving.empty()) return validate_serving(choices);
  if (!choices.leave_one_out.empty()) return leave_out(choices);
  return present::validation_report(validate(choices), choices.worst);
}

[[nodiscard]] std::vector<std::string> known_groups() {
  std::vector<std::string> groups = study::left_out_groups();
  groups.emplace_back(kExperiment);
  return groups;
}

CLI::Option* add_serving_options(CLI::App& command, ValidateChoices& choices) {
  CLI::Option* serving =
      reads(command.add_option("--serving", choices.serving, "CSV of served runs that others measured and predicted"))
          ->option_text("FILE");
  study::ServedChoices& served = choices.served;
  command.add_option("--stack", served.stack, "Of --serving: whose server is simulated, a name or a file")
      ->needs(serving);
  command.add_option("--prompts", served.prompts, "Of --serving: different prompts, which take turns")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(serving);
  command
      .add_option("--prefix-tokens", served.prefix_tokens,
                  "Of --serving: first tokens of a prompt that repeat; without it the whole prompt does")
      ->check(CLI::NonNegativeNumber)
      ->needs(serving);
  command.add_option("--seed", served.seed, "Of --serving: of arrivals")->needs(serving);
  return serving;
}

}  // namespace

void add_validate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("validate", "Predicted against measured, for traces, published points and served runs");
  auto choices = std::make_shared<ValidateChoices>();
  CLI::Option* traces =
      reads(command->add_option("traces", choices->traces, "Trace files, as `bench --trace` writes them"));
  CLI::Option* machine = reads(
      command->add_option("--machine", choices->machine, "Machine that the traces are predicted on: a file, or a name"),
      study::try_find_machine);
  CLI::Option* points =
      reads(command->add_option("--points", choices->points, "CSVs of published points"))->option_text("FILE...");
  points->excludes(traces);
  CLI::Option* calibrate_on = reads(command->add_option("--calibrate-on", choices->calibrate_on,
                                                        "CSVs of published points to learn from first"))
                                  ->option_text("FILE...")
                                  ->needs(points);
  CLI::Option* leave_one_out =
      command
          ->add_option("--leave-one-out", choices->leave_one_out,
                       "Predict the points of each machine, family of machines, vendor, source, "
                       "stack or program from those of all others: machine, family, vendor, "
                       "source, stack, software; with --serving: experiment")
          ->delimiter(',')
          ->check(CLI::IsMember(known_groups()))
          ->excludes(calibrate_on);
  CLI::Option* worst = command->add_option("--worst", choices->worst, "Rows in the table, the worst first; 0 = all")
                           ->check(CLI::NonNegativeNumber)
                           ->excludes(leave_one_out);
  add_serving_options(*command, *choices)->excludes(traces)->excludes(points)->excludes(machine)->excludes(worst);
  add_report_options(*command, choices->output);
  command->callback([choices] { present::show(validated(*choices), choices->output); });
}

}  // namespace dculab::cli
