// Standard output that is full or closed: the command fails and says so, whatever it prints and in which format.
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const Arguments kPredict{"predict", "--model", "llama-2-7b", "--machine", "z100"};

// One that ends quickly of every command, less those that need a file of another: see below.
std::vector<Arguments> commands(const Folder& folder) {
  return {kPredict,
          {"study", "group_size"},
          {"simulate", "serving/llama3_on_z100", "--set", "workload.requests=4", "weights=f16", "--no-intervals"},
          {"recommend", "--model", "llama-2-7b", "--machine", "z100"},
          {"tables", "intensity", "--model", "llama-2-7b", "--phase", "decode", "--tokens", "64"},
          {"tables", "footprint", "--model", "llama-2-7b", "--tokens", "64"},
          {"run", "--model", "dculab-tiny", "--prompt", "Once", "--max-tokens", "3"},
          {"bench", "--model", "dculab-tiny", "--context", "8", "--repeats", "1", "--warm-up", "0"},
          {"evaluate", "--model", "dculab-tiny", "--decode-steps", "0", "--text",
           folder.write("text", "Once upon a time there was a dog.\n")},
          {"probe", "--device", "host-gpu"},
          {"import", "--list-kernels"},
          {"replay", "--model", "dculab-tiny", "--machine", "z100", "--context", "16"},
          {"validate", "--points", folder.write("points.csv", one_published_point())},
          {"show", "z100"},
          {"show", "quickstart"},
          {"show", "llama-2-7b"}};
}

Arguments in_format(Arguments arguments, const std::string& format) {
  arguments.insert(arguments.end(), {"--format", format});
  return arguments;
}

std::string line_of(const Arguments& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line += argument + " ";
  return line;
}

void check_lost(const Arguments& arguments) {
  INFO(line_of(arguments));
  check_refusal(run_in_shell("exec \"$@\" >/dev/full", arguments),
                {"dculab: standard output cannot be written (No space left on device)\n"});
}

TEST_CASE("a full standard output fails every command in every format") {
  const Folder folder;
  for (const Arguments& command : commands(folder))
    for (const char* format : {"table", "json", "csv"}) check_lost(in_format(command, format));
  check_lost({"--help"});
  check_lost({"--version"});
  check_lost({"tables", "intensity", "--help"});
}

TEST_CASE("a full standard output fails commands that have written files") {
  const Folder folder;
  const std::string trace = folder.path("t.jsonl"), journal = folder.path("j");
  check_lost({"bench", "--model", "dculab-tiny", "--context", "8", "--repeats", "1", "--trace", trace});
  CHECK(read(trace).starts_with("{\"schema\":\"dculab/trace/2\""));
  const std::string scenario = folder.write("s.yaml", kSmallSearch);
  check_lost({"study", scenario, "--journal", journal});
  check_lost({"merge", journal});
  check_lost(
      {"quantize", "--model", "dculab-tiny", "--method", "rtn", "--group-size", "16", "--output", folder.path("int4")});
  CHECK(run_dculab({"show", folder.path("int4")}).exit_code == 0);
  check_lost(
      {"regroup", "--model", "dculab-tiny", "--kv-heads", "1", "--method", "mean", "--output", folder.path("mqa")});
  check_lost({"run", "--model", "dculab-tiny", "--max-tokens", "2", "--prompts", folder.write("p", "Once\nA\n")});
}

TEST_CASE("a closed standard output fails what prints and not what writes a file") {
  const std::string closed = "standard output cannot be written (Bad file descriptor)";
  for (const char* format : {"table", "json", "csv"})
    check_refusal(run_in_shell("exec \"$@\" >&-", in_format(kPredict, format)), {closed});
  check_refusal(run_in_shell("exec \"$@\" >&-", {"--help"}), {closed});
  check_refusal(run_in_shell("exec \"$@\" >&-", {"run", "--model", "dculab-tiny", "--prompt", "a"}), {closed});
}

TEST_CASE("a file is written although standard output is full") {
  const Folder folder;
  const std::string page = folder.path("page.html");
  if (!kHasPages) return;
  const Finished done = run_in_shell("exec \"$@\" >/dev/full",
                                     {"predict", "--model", "llama-2-7b", "--machine", "z100", "--report", page});
  CHECK(done.exit_code == 2);
  CHECK(std::filesystem::exists(page));
}

TEST_CASE("what is meant for a closed stream gets into no file") {
  const Folder folder;
  const std::string scenario = folder.write("s.yaml", kSmallSearch);
  const auto files = [&](const std::string& name) {
    Arguments all{"study", scenario, "--points", folder.path(name + ".csv"), "--output", folder.path(name + ".txt")};
    if (kHasPages) all.insert(all.end(), {"--report", folder.path(name + ".html")});
    return all;
  };
  CHECK(run_dculab(files("open")).exit_code == 0);
  const Finished closed = run_in_shell("exec \"$@\" <&- >&- 2>&-", files("closed"));
  CHECK(closed.exit_code == 0);
  for (const char* kind : {".csv", ".txt", kHasPages ? ".html" : ".txt"})
    CHECK(read(folder.path(std::string("closed") + kind)) == read(folder.path(std::string("open") + kind)));

  // The prompt's tokens are counted on standard error, in vain.
  const std::string text = folder.path("text");
  CHECK(run_in_shell("exec \"$@\" 2>&-",
                     {"run", "--model", "dculab-tiny", "--prompt", "Once", "--temperature", "0", "--output", text})
            .exit_code == 0);
  CHECK(read(text) == run_dculab({"run", "--model", "dculab-tiny", "--prompt", "Once", "--temperature", "0"}).out);
  CHECK(run_in_shell("exec \"$@\" <&- >&- 2>&-", {"show", "nothing"}).exit_code == 2);
}

TEST_CASE("a pipe that has lost its reader ends the program without a message") {
  const Folder folder;
  const std::string err = folder.path("err");
  (void)run_in_shell("(sleep 0.2; exec \"$@\" 2>" + err + ") | true", kPredict);
  CHECK(read(err).empty());
}

}  // namespace
}  // namespace dculab::cli::test
