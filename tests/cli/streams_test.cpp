// `-`: standard input for a file that is read, standard output for one that is written.
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kSource = DCULAB_SOURCE_DIR;

Finished piped(const std::string& file, const Arguments& arguments) {
  return run_in_shell("cat '" + file + "' | \"$@\"", arguments);
}

TEST_CASE("what a command reads may come through standard input, a pipe or a file", "[main]") {
  const Arguments predict{"predict", "--model", "llama-3-8b", "--machine"};
  const auto with = [](Arguments arguments, const std::string& name) {
    arguments.push_back(name);
    return arguments;
  };
  const std::string machine = kSource + "/hwmodels/z100.yaml", scenario = kSource + "/scenarios/block_size.yaml";
  const std::string named = run_dculab(with(predict, machine)).out;
  REQUIRE_FALSE(named.empty());
  CHECK(piped(machine, with(predict, "-")).out == named);
  CHECK(run_in_shell("\"$@\" <'" + machine + "'", with(predict, "-")).out == named);
  CHECK(piped(scenario, {"study", "-"}).out == run_dculab({"study", scenario}).out);
  CHECK(piped(scenario, {"show", "-", "--format", "json"}).exit_code == 0);
  check_refusal(piped(machine, {"study", "-"}), {"/dev/stdin:", "is a machine", "not a scenario"});
  const Folder folder;
  const std::string points = folder.write("points.csv", one_published_point());
  CHECK(piped(points, {"validate", "--points", "-"}).out == run_dculab({"validate", "--points", points}).out);
}

TEST_CASE("standard input is read by one option, and is no model") {
  check_refused({"study", "-", "-"}, {"scenario: standard input is read by it twice; name a file"});
  check_refused({"study", "-", "--host", "-"}, {"standard input is read by ", "name a file"});
  check_refused({"predict", "--model", "-", "--machine", "z100"}, {"--model: a model is a folder"});
}

TEST_CASE("what a command writes may go to standard output, which is for one thing", "[main]") {
  const Folder folder;
  const Arguments predict{"predict", "--model", "llama-3-8b", "--machine", "z100"};
  const auto with = [&predict](const Arguments& more) {
    Arguments arguments = predict;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  CHECK(run_dculab(with({"--output", "-"})).out == run_dculab(predict).out);
  const Arguments simulate{"simulate", "--model",    "llama-3-8b", "--machine",
                           "z100",     "--requests", "4",          "--no-intervals"};
  Arguments saved = simulate;
  saved.insert(saved.end(), {"--save-result", "-"});
  check_refused(saved, {"--save-result: standard output has the answer already", "--output FILE"});
  saved.insert(saved.end(), {"--output", folder.path("answer.txt")});
  CHECK(Json::parse(run_dculab(saved).out).contains("request_throughput"));
  CHECK(folder.entries() == std::vector<std::string>{"answer.txt"});
  if (kHasPages)
    CHECK_THAT(run_dculab(with({"--report", "-", "--output", "/dev/null"})).out, ContainsSubstring("<html"));
  check_refused({"simulate", "serving/llama3_on_z100", "--save-result", "-", "--chrome-trace", "-"},
                {"standard output is written by ", "name a file"});
  check_refused({"quantize", "--model", "dculab-tiny", "--output", "-"},
                {"--output: standard output does not take what is written here; give a name"});
  check_refused({"study", "group_size", "--journal", "-"}, {"--journal: standard output does not take"});
}

}  // namespace
}  // namespace dculab::cli::test
