// The dculab program: one subcommand per file. Exit codes: 0 done; others in cli/program_errors.hpp.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/program_errors.hpp"
#include "engine/executors/thread_shortage.hpp"
#include "fields/printable_text.hpp"
#include "files/interruption.hpp"
#include "present/output/standard_output.hpp"
#include "study/measure/conversation_lengths.hpp"

namespace {

constexpr std::size_t kLongestReason = 1000;

// The command that was named, down to `tables intensity`.
const CLI::App& named_command(const CLI::App& app) {
  const std::vector<const CLI::App*> named = app.get_subcommands({});
  const auto parsed = std::find_if(named.begin(), named.end(), [](const CLI::App* each) { return each->parsed(); });
  return parsed == named.end() ? app : named_command(**parsed);
}

// "dculab tables intensity"; a group of options has no name.
std::string full_name(const CLI::App& command) {
  const std::string above = command.get_parent() == nullptr ? "" : full_name(*command.get_parent());
  return above + (above.empty() || command.get_name().empty() ? "" : " ") + command.get_name();
}

// One line. A misspelt option is named first: what it was to set then seems to be missing too.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::string command = full_name(named_command(app));
  std::string unknown;
  for (const std::string& argument : app.remaining(true)) unknown += " " + argument;
  const std::string reason = unknown.empty() ? error.what() : "not known here:" + unknown;
  return command + ": " + dculab::shortened(reason, kLongestReason) + "; see " + command + " --help";
}

// --help, --version
void print_answer(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text;
  app.exit(error, text, text);
  dculab::present::print(text.str());
}

int run_program(int argc, char* argv[]) {
  CLI::App app{
      "How fast will this LLM run on that machine, what holds it back, and which GQA group size and KV block\n"
      "size should it use? dculab runs LLM inference and predicts its time on machines described in YAML."};
  app.name("dculab");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("dculab ") + DCULAB_VERSION);
  dculab::cli::add_commands(app);
  dculab::engine::set_thread_shortage_handler([](int had, int wanted) {
    std::cerr << "dculab: only " << had << " of " << wanted << " threads can be had; going on with " << had << '\n';
  });
  dculab::study::count_conversations_with(dculab::study::conversation_lengths);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      std::cerr << dculab::printable(explain(app, error)) << '\n';
      return dculab::cli::kBadInput;
    }
    print_answer(app, error);
  }
  dculab::present::check_standard_output();
  return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
  dculab::present::occupy_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond `ulimit -f` is a write that fails, and is reported as one
  try {
    dculab::files::undo_when_interrupted();
    return run_program(argc, argv);
  } catch (...) {
    return dculab::cli::report_exception();
  }
}
