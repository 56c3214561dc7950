// Two options of a command that name one file, where one of them writes it: refused before any work.
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

namespace fs = std::filesystem;

Arguments predict(const std::string& machine, const Arguments& more) {
  Arguments arguments{"predict", "--model", "llama-2-7b", "--machine", machine};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("a file that a command reads is not written, under whatever name") {
  const Folder folder;
  const std::string text = read(DCULAB_SOURCE_DIR "/hwmodels/z100.yaml"), machine = folder.write("m.yaml", text);
  fs::create_symlink("m.yaml", folder.path("link"));
  fs::create_hard_link(machine, folder.path("hard"));
  fs::create_directory(folder.path("sub"));
  const Arguments names{machine, folder.path("./m.yaml"), folder.path("sub/../m.yaml"), folder.path("link"),
                        folder.path("hard")};
  for (const std::string& name : names) {
    check_refused(predict(machine, {"--output", name}), {"--output: " + name, "read by --machine; name another file"});
    check_refused(predict(machine, {"--report", name}), {"--report: " + name, "read by --machine"});
  }
  CHECK(read(machine) == text);
  CHECK(run_dculab(predict(machine, {"--output", folder.path("new")})).exit_code == 0);
}

TEST_CASE("a file is written by one option only, also before it is there") {
  const Folder folder;
  const std::string file = folder.path("new");
  check_refused(predict("z100", {"--output", file, "--report", folder.path("./new")}), {"new", "written by --output"});
  for (const char* option : {"--points", "--output", "--report"})
    check_refused({"study", "group_size", "--journal", file, option, file}, {option, "written", "--journal"});
  check_refused({"bench", "--model", "dculab-tiny", "--trace", file, "--output", file}, {"written by --trace"});
  check_refused({"simulate", "serving/llama3_on_z100", "--chrome-trace", file, "--report", file}, {"written"});
  CHECK(folder.entries().empty());
  CHECK(run_dculab(predict("z100", {"--output", "/dev/null", "--report", "/dev/null"})).exit_code == 0);
}

TEST_CASE("every kind of input is kept from every kind of output") {
  const Folder folder;
  const std::string file = folder.write("input", "input\n");
  const std::vector<Arguments> commands{
      {"study", file, "--output", file},
      {"study", file, "--journal", file},
      {"study", "quickstart", "--host", file, "--trace", file},
      {"merge", file, "--points", file},
      {"simulate", file, "--report", file},
      {"recommend", file, "--output", file},
      {"recommend", "--model", "llama-2-7b", "--machine", "z100", "--trace", file, "--output", file},
      {"run", "--model", "dculab-tiny", "--prompts", file, "--output", file},
      {"bench", "--workload", file, "--trace", file},
      {"evaluate", "--model", "dculab-tiny", "--text", file, "--output", file},
      {"evaluate", "--model", "dculab-tiny", "--choices", "other," + file, "--output", file},
      {"import", file, "--model", "dculab-tiny", "--machine", "z100", "--trace", file},
      {"quantize", "--model", "dculab-tiny", "--calibration", file, "--output", file},
      {"regroup", "--model", "dculab-tiny", "--kv-heads", "1", "--method", "mean", "--calibration", file, "--output",
       file},
      {"replay", "--model", "dculab-tiny", "--machine", file, "--output", file},
      {"calibrate", file, "--machine", "z100", "--machine-file", file},
      {"validate", "--points", file, "--output", file},
      {"validate", "--points", "other", "--calibrate-on", file, "--report", file},
      {"validate", file, "--machine", "z100", "--output", file},
      {"show", file, "--output", file}};
  for (const Arguments& command : commands)
    check_refused(command, {file + " is ", " here and ", " by ", "; name another file"});
  CHECK(read(file) == "input\n");
  CHECK(folder.entries() == std::vector<std::string>{"input"});
}

TEST_CASE("results may lie in a model's folder, and take the place of none of its files") {
  const Folder folder;
  const std::string config = read(DCULAB_SOURCE_DIR "/scenarios/models/llama-2-7b/config.json");
  folder.write("config.json", config);
  const std::string model = fs::path(folder.path("config.json")).parent_path();
  const Arguments tables{"tables", "footprint", "--model", model, "--tokens", "8", "--output"};
  const auto with = [&tables](const std::string& output) {
    Arguments arguments = tables;
    arguments.push_back(output);
    return arguments;
  };
  check_refused(with(folder.path("config.json")), {"read by --model"});
  CHECK(read(folder.path("config.json")) == config);
  for (int again = 0; again < 2; ++again) CHECK(run_dculab(with(folder.path("result.json"))).exit_code == 0);
}

}  // namespace
}  // namespace dculab::cli::test
