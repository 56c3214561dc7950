// What the system does not grant: paths that lead nowhere, folders that may not be read, memory, threads. One line,
// exit code 2.
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::cli::test {
namespace {

namespace fs = std::filesystem;

// Every command with every option that names a file, and `path` in its place.
std::vector<Arguments> reading(const std::string& path, const std::string& points) {
  return {{"show", path},
          {"predict", "--model", path, "--machine", "z100"},
          {"predict", "--model", "llama-2-7b", "--machine", path},
          {"study", path},
          {"study", "quickstart", "--measure", "--host", path},
          {"merge", path},
          {"simulate", path},
          {"recommend", path},
          {"recommend", "--model", path, "--machine", "z100"},
          {"recommend", "--model", "llama-2-7b", "--machine", path},
          {"recommend", "--model", "llama-2-7b", "--machine", "z100", "--trace", path},
          {"tables", "footprint", "--model", path, "--tokens", "8"},
          {"run", "--model", path, "--prompt", "hi"},
          {"run", "--model", "dculab-tiny", "--prompts", path},
          {"bench", "--model", path},
          {"bench", "--workload", path},
          {"evaluate", "--model", path},
          {"evaluate", "--model", "dculab-tiny", "--text", path},
          {"evaluate", "--model", "dculab-tiny", "--choices", path},
          {"evaluate", "--model", "dculab-tiny", "--reference", path},
          {"import", path, "--model", "dculab-tiny", "--machine", "z100"},
          {"quantize", "--model", path, "--output", "/dev/null/model"},
          {"quantize", "--model", "dculab-tiny", "--calibration", path, "--output", "/dev/null/model"},
          {"regroup", "--model", path, "--kv-heads", "1", "--method", "mean", "--output", "/dev/null/model"},
          {"replay", "--model", path, "--machine", "z100"},
          {"replay", "--model", "dculab-tiny", "--machine", path},
          {"calibrate", path, "--machine", "z100"},
          {"validate", path, "--machine", "z100"},
          {"validate", "--points", path},
          {"validate", "--points", points, "--calibrate-on", path}};
}

std::vector<Arguments> writing(const std::string& path, const std::string& search) {
  // Where there are no pages the option is refused for that.
  const char* page = kHasPages ? "--report" : "--output";
  return {{"predict", "--model", "llama-2-7b", "--machine", "z100", "--output", path},
          {"predict", "--model", "llama-2-7b", "--machine", "z100", page, path},
          {"study", search, "--journal", path},
          {"study", search, "--points", path},
          {"simulate", "serving/llama3_on_z100", "--chrome-trace", path},
          {"bench", "--model", "dculab-tiny", "--trace", path},
          {"probe", "--quick", "--machine-file", path},
          {"quantize", "--model", "dculab-tiny", "--method", "rtn", "--output", path},
          {"regroup", "--model", "dculab-tiny", "--kv-heads", "1", "--method", "mean", "--output", path},
          {"show", "z100", "--output", path}};
}

void check_all(const std::string& script, const std::string& path, const std::string& part) {
  const Folder folder;
  const std::string search = folder.write("search.yaml", kSmallSearch);
  const std::string points = folder.write("points.csv", one_published_point());
  for (const auto& commands : {reading(path, points), writing(path, search)})
    for (const Arguments& arguments : commands) {
      std::string line;
      for (const std::string& argument : arguments) line += argument + " ";
      INFO(line);
      const Finished done = run_in_shell(script, arguments);
      check_refusal(done, {part});
      CHECK(done.err.size() < 1000);
    }
}

TEST_CASE("links that lead to themselves, long names and empty ones") {
  const Folder folder;
  fs::create_symlink("loop", folder.path("loop"));
  check_all("exec \"$@\"", folder.path("loop"), folder.path("loop"));
  const std::string name(300, 'n');
  check_all("exec \"$@\"", folder.path(name), folder.path(name).substr(0, 150));
  check_all("exec \"$@\"", "", "the name is empty");
  CHECK(folder.entries() == std::vector<std::string>{"loop"});
}

TEST_CASE("folders that may not be entered") {
  const Folder folder;
  fs::create_directory(folder.path("locked"));
  fs::permissions(folder.path("locked"), fs::perms::none);
  // Root may enter all folders, unless it gives that up.
  const std::string as_user =
      getuid() == 0 ? "exec setpriv --bounding-set=-dac_override,-dac_read_search \"$@\"" : "exec \"$@\"";
  check_all(as_user, folder.path("locked/x"), folder.path("locked/x"));
  fs::permissions(folder.path("locked"), fs::perms::all);
}

TEST_CASE("a working folder that is gone") {
  const std::string gone = "d=$(mktemp -d) && cd $d && rmdir $d && exec \"$@\"";
  check_all(gone, "nothing", "nothing");
  for (const Arguments& command : {Arguments{"show", "z100"},
                                   {"predict", "--model", "llama-2-7b", "--machine", "z100"},
                                   {"run", "--model", "dculab-tiny", "--prompt", "Once", "--max-tokens", "2"}})
    CHECK(run_in_shell(gone, command).out == run_dculab(command).out);
}

TEST_CASE("a shard's name that no file can have") {
  const Folder folder;
  folder.write("config.json", read(DCULAB_SOURCE_DIR "/scenarios/models/dculab-tiny/config.json"));
  folder.write("model.safetensors.index.json",
               R"({"metadata": {}, "weight_map": {"a": ")" + std::string(5000, 's') + ".safetensors\"}}");
  const std::string model = fs::path(folder.path("config.json")).parent_path();
  const Finished done = run_dculab({"bench", "--model", model, "--context", "4"});
  check_refusal(done, {model});
  CHECK(done.err.size() < 1000);
}

TEST_CASE("memory that is not there") {
  if (kSanitized) return;  // the sanitizer's own memory is larger than any limit
  const Folder folder;
  const std::string output = folder.path("o");
  const Arguments run{"run",       "--model", "dculab-tiny-draft", "--prompt", "Once",     "--max-tokens", "2",
                      "--threads", "1",       "--format",          "json",     "--output", output};
  int refused = 0;
  bool starts = false;  // below that, the loader or the kernel ends the program
  for (int mib = 1; mib < 400; mib += mib < 32 ? 1 : 16) {
    INFO(mib << " MiB");
    const Finished done = run_in_shell("ulimit -v $((" + std::to_string(mib) + " * 1024)); exec \"$@\"", run);
    CHECK(done.exit_code != 128 + SIGABRT);
    CHECK(fs::exists(output) == (done.exit_code == 0));
    fs::remove(output);
    starts = starts || done.exit_code == 2;
    if (!starts || done.exit_code == 0) continue;
    ++refused;
    check_refusal(done, {"dculab: ", "memory"});
  }
  CHECK(refused > 0);
  CHECK(folder.entries().empty());
}

TEST_CASE("files that may not grow") {
  const Folder folder;
  const Arguments predict{"predict", "--model", "llama-2-7b", "--machine", "z100", "--format", "json", "--output"};
  Arguments to_file = predict;
  to_file.push_back(folder.path("o.json"));
  const Finished done = run_in_shell("ulimit -f 4; exec \"$@\"", to_file);
  check_refusal(done, {"o.json", "cannot be written (File too large)"});
  CHECK(folder.entries().empty());
}

TEST_CASE("threads that are not there") {
  const Folder folder;
  fs::permissions(fs::path(folder.path("x")).parent_path(), fs::perms(0755));
  const std::string as_nobody = getuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  const std::string script = "exec " + as_nobody + "bash -c 'ulimit -u 1; exec \"$@\"' bash \"$@\"";
  const Arguments version{"--version"};
  if (run_in_shell(script, version).exit_code != 0) {
    WARN("not tested: user 65534 may not run the program, or setpriv is not there");
    return;
  }
  for (const Arguments& command :
       {Arguments{"study", folder.write("search.yaml", kSmallSearch), "--threads", "8"},
        {"simulate", "serving/llama3_on_z100", "--set", "workload.requests=8", "--threads", "8"}}) {
    const Finished without = run_in_shell(script, command);
    INFO(without.err);
    CHECK(without.exit_code == 0);
    CHECK(without.out == run_dculab(command).out);
  }
}

}  // namespace
}  // namespace dculab::cli::test
