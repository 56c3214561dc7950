// `dculab validate`: predicted against measured, for published points, served runs and traces.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/benchmark_choices.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/server_choices.hpp"
#include "present/answer/answered_validation.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct ValidateChoices {
  present::ValidationQuestion question;
  ServerChoices server;
  present::OutputOptions output;
};

CLI::Option* add_serving_options(CLI::App& command, present::ValidationQuestion& choices) {
  CLI::Option* serving =
      reads(command.add_option("--serving", choices.serving, "CSV of served runs that others measured and predicted"))
          ->option_text("FILE");
  study::ServedChoices& served = choices.served;
  command.add_option("--prompts", served.prompts, "With --serving: number of different prompts, which take turns")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(serving);
  command
      .add_option("--prefix-tokens", served.prefix_tokens,
                  "With --serving: first tokens of a prompt that repeat; default: the whole prompt")
      ->check(CLI::NonNegativeNumber)
      ->needs(serving);
  command.add_option("--seed", served.seed, "With --serving: seed of the arrivals")->needs(serving);
  return serving;
}

}  // namespace

void add_validate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("validate", "Compare predictions with benchmarks, traces, published points and served runs");
  auto choices = std::make_shared<ValidateChoices>();
  CLI::Option* files = reads(command->add_option("files", choices->question.files, kMeasuredFilesHelp));
  CLI::Option* machine = reads(command->add_option("--machine", choices->question.machine,
                                                   "Machine that the files are predicted on: a file, or a name"),
                               study::try_find_machine);
  add_benchmark_choices(*command, choices->question.benchmark);
  CLI::Option* points = reads(command->add_option("--points", choices->question.points, "CSVs of published points"))
                            ->option_text("FILE...");
  points->excludes(files);
  CLI::Option* server = add_server_choices(*command, choices->server);
  server->excludes(files)->excludes(points);
  CLI::Option* calibrate_on = reads(command->add_option("--calibrate-on", choices->question.calibrate_on,
                                                        "CSVs of published points to calibrate on first"))
                                  ->option_text("FILE...")
                                  ->needs(points);
  CLI::Option* leave_one_out =
      command
          ->add_option("--leave-one-out", choices->question.leave_one_out,
                       "Predict the points of each machine, family of machines, vendor, source, "
                       "stack or program from those of all others: machine, family, vendor, "
                       "source, stack, software; with --serving: experiment")
          ->delimiter(',')
          ->check(CLI::IsMember(present::left_out_choices()))
          ->excludes(calibrate_on);
  CLI::Option* worst =
      command->add_option("--worst", choices->question.worst, "Rows of the table, worst first; 0 = all")
          ->check(CLI::NonNegativeNumber)
          ->excludes(leave_one_out);
  add_serving_options(*command, choices->question)
      ->excludes(files)
      ->excludes(points)
      ->excludes(machine)
      ->excludes(server)
      ->excludes(worst);
  add_report_options(*command, choices->output);
  add_examples(*command, {"dculab validate trace.jsonl --machine host.yaml", "dculab validate --points points.csv"});
  command->callback([choices] {
    present::ValidationQuestion question = choices->question;
    question.benchmark.machine = question.machine;
    if (!choices->server.server.url.empty()) measure_server(choices->server, question.benchmark);
    present::show(present::answered_validation(question), choices->output);
  });
}

}  // namespace dculab::cli
