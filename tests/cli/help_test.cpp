// What a user finds without reading anything else.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/kv/table.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

// All commands, down to `tables intensity`, as the overview of `dculab` alone and --help of commands list them.
std::vector<Arguments> all_commands() {
  const auto listed = [](const std::string& text) {
    std::vector<std::string> names;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("  ") && line[2] >= 'a' && line[2] <= 'z' && !line.starts_with("  dculab "))
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
    return names;
  };
  std::vector<Arguments> commands;
  for (const std::string& name : listed(run_dculab({}).out)) commands.push_back({name});
  for (const char* const name : {"intensity", "footprint", "latents"}) commands.push_back({"tables", name});
  return commands;
}

// The command lines under "Example:" of a help text.
std::vector<std::string> examples_of(const std::string& help) {
  std::vector<std::string> examples;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  dculab ")) examples.push_back(line.substr(2));
  return examples;
}

TEST_CASE("dculab alone says what it is for and where to begin, and lists every command by group", "[main]") {
  const Finished done = run_dculab({});
  CHECK(done.exit_code == 0);
  CHECK(done.err.empty());
  CHECK(examples_of(done.out).size() == 3);
  for (const char* const group :
       {"Predict and choose:", "Look up:", "Run models on this machine:", "Measure and compare:", "Install:"})
    CHECK_THAT(done.out, ContainsSubstring(group));
  const std::string help = run_dculab({"--help"}).out;
  for (const Arguments& command : all_commands())
    if (command.size() == 1) CHECK_THAT(help, ContainsSubstring("\n  " + command[0] + " "));
  CHECK(all_commands().size() > 20);
}

TEST_CASE("every command explains itself, with an example") {
  for (Arguments command : all_commands()) {
    INFO(command.back());
    Arguments by_help{"help"};
    by_help.insert(by_help.end(), command.begin(), command.end());
    const std::string name = command[0];
    const std::set<std::string> others{"serve", "page", "help", "completion", "manual"};
    const bool prints_result = !others.contains(name) && command != Arguments{"tables"};
    command.emplace_back("--help");
    const Finished done = run_dculab(command);
    CHECK(done.exit_code == 0);
    CHECK(done.err.empty());
    CHECK_THAT(done.out, ContainsSubstring("Usage: "));
    CHECK_FALSE(examples_of(done.out).empty());
    CHECK(run_dculab(by_help).out == done.out);
    if (!prints_result) continue;
    CHECK_THAT(done.out, ContainsSubstring("--format table|json|csv"));
    const bool writes_folder = name == "quantize" || name == "regroup";
    const std::string output = name == "calibrate" ? "FILE|FOLDER" : writes_folder ? "FOLDER" : "FILE";
    CHECK_THAT(done.out, ContainsSubstring("--output " + output));
  }
}

TEST_CASE("help shows defaults") {
  const std::string predict = run_dculab({"predict", "--help"}).out;
  for (const char* const line : {"--batch INT [1]", "--context INT [1024]", "--block-size INT [16]",
                                 "--kv-cache-dtype TEXT [f16]", "--format table|json|csv [table]"})
    CHECK_THAT(predict, ContainsSubstring(line));
  CHECK_THAT(run_dculab({"run", "--help"}).out, ContainsSubstring("--threads INT [0]"));
  CHECK_THAT(run_dculab({"recommend", "--help"}).out, !ContainsSubstring("--requests INT [0]"));
}

TEST_CASE("the examples of help work where a user types them", "[once]") {
  const Folder folder;
  const std::string data = DCULAB_SOURCE_DIR "/tests/data/";
  std::filesystem::copy_file(data + "profiles/rocprof_dculab.csv", folder.path("results.csv"));
  folder.write("points.csv", one_published_point());
  folder.write("text.txt", read(DCULAB_SOURCE_DIR "/README.md").substr(0, 2000));
  std::vector<std::string> examples = examples_of(run_dculab({}).out);
  std::vector<Arguments> commands = all_commands();
  const auto makes_inputs = [](const Arguments& command) { return command[0] == "probe" || command[0] == "bench"; };
  std::stable_partition(commands.begin(), commands.end(), makes_inputs);
  for (Arguments command : commands) {
    command.emplace_back("--help");
    for (std::string& example : examples_of(run_dculab(command).out)) examples.push_back(std::move(example));
  }
  for (const std::string& example : examples) {
    INFO(example);
    const bool is_endless = example.starts_with("dculab serve ");
    const std::string line = "program=$1; dculab() { \"$program\" \"$@\"; }; cd '" + folder.path("") + "'; " + example +
                             (is_endless ? " --help" : "");
    const Finished done = run_in_shell(line, {});
    INFO(done.err);
    const bool has_no_page = done.err.find("this build has no page") != std::string::npos;
    CHECK((done.exit_code == 0 || (has_no_page && example == "dculab page --output lab.html")));
  }
}

TEST_CASE("help names every format of a KV cache") {
  for (const char* const command : {"run", "bench", "predict"}) {
    const std::string help = run_dculab({command, "--help"}).out;
    for (const KvFormat& format : kKvFormats) {
      INFO(command << " " << name(format.dtype));
      CHECK_THAT(help, ContainsSubstring(std::string(name(format.dtype))));
    }
  }
}

TEST_CASE("the version is a line") {
  const Finished done = run_dculab({"--version"});
  CHECK(done.exit_code == 0);
  CHECK(done.out.starts_with("dculab "));
}

}  // namespace
}  // namespace dculab::cli::test
