// The dculab program: one subcommand per file. Exit codes: 0 done; others in cli/program_errors.hpp.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <sstream>
#include <string>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/program_errors.hpp"
#include "cli/usage_errors.hpp"
#include "core/version.hpp"
#include "engine/executors/thread_shortage.hpp"
#include "fields/printable_text.hpp"
#include "files/interruption.hpp"
#include "present/output/standard_output.hpp"
#include "study/measure/conversation_lengths.hpp"

namespace {

// --help, --version
void print_answer(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text;
  app.exit(error, text, text);
  dculab::present::print(text.str());
}

int run_program(int argc, char* argv[]) {
  CLI::App app{dculab::cli::kPurpose};
  app.name("dculab");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", std::string("dculab ") + dculab::version());
  dculab::cli::set_help_text(app);
  dculab::cli::add_commands(app);
  dculab::engine::set_thread_shortage_handler([](int had, int wanted) {
    std::cerr << "dculab: only " << had << " of " << wanted << " threads can be had; going on with " << had << '\n';
  });
  dculab::study::count_conversations_with(dculab::study::conversation_lengths);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 || dculab::cli::names_unknown_command(app)) {
      std::cerr << dculab::printable(dculab::cli::explain(app, error)) << '\n';
      return dculab::cli::kBadInput;
    }
    print_answer(app, error);
    dculab::present::check_standard_output();
    return 0;
  }
  if (app.get_subcommands().empty()) dculab::present::print(dculab::cli::overview(app));
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
