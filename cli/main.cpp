// The dculab program: one subcommand per file, exit code 0 done, 1 the study failed, 2 bad input.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "cli/commands.hpp"
#include "core/error.hpp"

namespace {

constexpr int kStudyFailed = 1;
constexpr int kBadInput = 2;

}  // namespace

int main(int argc, char* argv[]) {
  CLI::App app{
      "How fast will this LLM run on that machine, what holds it back, and which GQA group size and KV block\n"
      "size should it use? dculab runs LLM inference for real and prices the same work on machines in YAML."};
  app.name("dculab");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("dculab ") + DCULAB_VERSION);
  dculab::cli::add_commands(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  } catch (const dculab::InputError& error) {
    std::cerr << "dculab: " << error.what() << '\n';
    return kBadInput;
  } catch (const std::exception& error) {
    std::cerr << "dculab: " << error.what() << '\n';
    return kStudyFailed;
  }
}
