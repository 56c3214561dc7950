// `dculab import`: turns a profiler's table of kernels into a trace.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/trace_file.hpp"
#include "files/output.hpp"
#include "present/study/import_report.hpp"

namespace dculab::cli {
namespace {

struct ImportCommand {
  study::ImportQuestion question;
  std::string profiler = "auto";
  study::StepQuestion step;
  std::string step_time;  // "": period in decode, span in prefill
  std::string trace_file;
  std::vector<std::string> kernel_names;  // "PART=OP"
  bool list_kernels = false;
  present::OutputOptions output;
};

[[nodiscard]] config::Profiler parse_profiler(const std::string& text) {
  using enum config::Profiler;
  for (const config::Profiler each : {rocprof, rocprofv3, hipprof, nsys, pytorch})
    if (text == name(each)) return each;
  return automatic;
}

void run_import(const ImportCommand& command) {
  if (command.list_kernels) return present::show(present::kernel_rules_report(), command.output);
  for (const auto& [option, given] :
       {std::pair("FILE", &command.question.profile), std::pair("--model", &command.step.model),
        std::pair("--machine", &command.step.machine)})
    if (given->empty()) throw CLI::RequiredError(option);
  study::ImportQuestion question = command.question;
  question.profiler = parse_profiler(command.profiler);
  question.scenario = study::step_scenario(command.step);
  for (const std::string& each : command.kernel_names)
    question.choices.named.push_back(config::parse_named_kernels(each));
  if (!command.step_time.empty())
    question.time = command.step_time == "period" ? config::StepTime::period : config::StepTime::span;
  const study::ImportedProfile import = study::import_profile(question);
  if (!command.trace_file.empty())
    files::write_file_atomically(command.trace_file, config::trace_json_lines(import.trace));
  present::show(present::import_report(import), command.output);
}

}  // namespace

void add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Turn a GPU profiler's kernels into a trace");
  auto import = std::make_shared<ImportCommand>();
  reads(command->add_option("file", import->question.profile,
                            "What rocprof, rocprofv3, hipprof, nsys or PyTorch recorded"));
  add_step_choices(*command, import->step);
  for (const char* option : {"--model", "--machine"}) command->get_option(option)->required(false);
  command
      ->add_option("--new-tokens", import->question.new_tokens,
                   "Prefill: new tokens per sequence, if not the whole context")
      ->check(at_least(1));
  command->add_option("--profiler", import->profiler, "Profiler that wrote the file; auto: found from its content")
      ->check(CLI::IsMember({"auto", "rocprof", "rocprofv3", "hipprof", "nsys", "pytorch"}))
      ->option_text("auto|rocprof|rocprofv3|hipprof|nsys|pytorch [auto]");
  command
      ->add_option("--growth", import->question.growth,
                   "Tokens the context grows by per step; 1 in decode, 0 in prefill")
      ->check(at_least(0));
  command
      ->add_option("--step-time", import->step_time,
                   "A step ends when the next begins (decode) or with its own last kernel (prefill)")
      ->check(CLI::IsMember({"period", "span"}))
      ->option_text("period|span");
  command->add_option("--skip-steps", import->question.choices.skip_steps, "Whole steps to leave out first")
      ->check(at_least(0));
  command->add_option("--steps", import->question.choices.steps, "Steps to import, 0 = all")->check(at_least(0));
  command
      ->add_option("--steps-per-row", import->question.choices.steps_per_row,
                   "Steps per row, which is their median; 0 = all")
      ->check(at_least(0));
  command
      ->add_option("--max-other", import->question.choices.most_other,
                   "Largest share of kernel time outside all ops [0.1]")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--kernel-name", import->kernel_names,
                   "Kernels with PART in their name serve OP, one of those of --list-kernels")
      ->option_text("PART=OP ...");
  add_output_file(*command, "--trace", import->trace_file, "Write the trace here (JSON Lines)");
  command->add_flag("--list-kernels", import->list_kernels, "Print which kernel names belong to which op");
  add_output_options(*command, import->output);
  add_examples(*command,
               {"dculab import results.csv --model dculab-tiny --machine z100 --context 200 --trace imported.jsonl"});
  command->callback([import] { run_import(*import); });
}

}  // namespace dculab::cli
