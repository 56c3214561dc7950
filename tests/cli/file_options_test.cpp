// Two options of a command that name one file, where one of them writes it: refused before any work.
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

namespace fs = std::filesystem;

Arguments predict_on(const std::string& machine, const Arguments& more) {
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
    check_refused(predict_on(machine, {"--output", name}),
                  {"--output: " + name, "read by --machine; name another file"});
    check_refused(predict_on(machine, {"--report", name}), {"--report: " + name, "read by --machine"});
  }
  CHECK(read(machine) == text);
  CHECK(run_dculab(predict_on(machine, {"--output", folder.path("new")})).exit_code == 0);
}

TEST_CASE("a file is written by one option only, also before it is there") {
  const Folder folder;
  const std::string file = folder.path("new");
  check_refused(predict_on("z100", {"--output", file, "--report", folder.path("./new")}),
                {"new", "written by --output"});
  for (const char* option : {"--points", "--output", "--report"})
    check_refused({"study", "group_size", "--journal", file, option, file}, {option, "written", "--journal"});
  check_refused({"bench", "--model", "dculab-tiny", "--trace", file, "--output", file}, {"written by --trace"});
  check_refused({"simulate", "serving/llama3_on_z100", "--chrome-trace", file, "--report", file}, {"written"});
  CHECK(folder.entries().empty());
  fs::create_symlink("new", folder.path("link"));
  check_refused(predict_on("z100", {"--output", folder.path("link"), "--report", file}), {"written by --output"});
  check_refused(predict_on("z100", {"--report", file, "--output", folder.path("link")}), {"written by --"});
  CHECK(folder.entries() == std::vector<std::string>{"link"});
  Arguments twice{"--output", "/dev/null"};
  if (kHasPages) twice.insert(twice.end(), {"--report", "/dev/null"});
  CHECK(run_dculab(predict_on("z100", twice)).exit_code == 0);
}

TEST_CASE("a build without the page of charts says how to get it") {
  const Folder folder;
  const Finished done = run_dculab(predict_on("z100", {"--report", folder.path("page.html")}));
  if (kHasPages) {
    CHECK(done.exit_code == 0);
    return;
  }
  check_refused(predict_on("z100", {"--report", folder.path("page.html")}), {"--report", "scripts/install-packages"});
  CHECK(folder.entries().empty());
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
  const Folder blobs;  // as in a Hub cache
  for (const char* name : {"tokenizer_config.json", "model.safetensors"}) {
    fs::create_symlink(blobs.write(name + std::string(".blob"), "mine"), folder.path(name));
    fs::create_symlink(name, folder.path("link"));
    check_refused(with(folder.path(name)), {"read by --model"});
    check_refused(with(folder.path("link")), {"read by --model"});
    fs::remove(folder.path("link"));
  }
  for (int again = 0; again < 2; ++again) CHECK(run_dculab(with(folder.path("result.json"))).exit_code == 0);
}

constexpr const char* kStepScenario =
    "schema: dculab/scenario/1\nquestion: How long?\nworkload: {phase: decode, batch: 1, context_tokens: 100}\n";

TEST_CASE("a machine or a model that a scenario names is not written") {
  const Folder folder;
  const std::string machine_text = read(DCULAB_SOURCE_DIR "/hwmodels/z100.yaml");
  const std::string machine = folder.write("m.yaml", machine_text), model = folder.path("model");
  fs::create_directory(model);
  folder.write("model/config.json", read(DCULAB_SOURCE_DIR "/scenarios/models/llama-2-7b/config.json"));
  folder.write("model/model.safetensors", "weights");
  const std::string names = "machine: " + machine + "\nmodel: " + model + "\n";
  const std::string step = folder.write("step.yaml", kStepScenario + names);
  const std::string search =
      folder.write("search.yaml", kStepScenario + names +
                                      "sweep: {workload.batch: [1, 2]}\nobjective: {maximize: tokens_per_second}\n");
  const std::string swept =
      folder.write("swept.yaml", std::string(kStepScenario) + "model: " + model + "\nmachines: [z100, " + machine +
                                     "]\nsweep: {workload.batch: [1, 2]}\nobjective: {maximize: tokens_per_second}\n");
  const std::string first =
      folder.write("first.yaml", std::string(kStepScenario) + "model: llama-2-7b\nmachine: z100\nthen: [step.yaml]\n");
  for (const std::string& scenario : {step, search, swept, first})
    for (const std::string& file : {machine, folder.path("model/config.json"), folder.path("model/model.safetensors")})
      for (const char* option : {"--output", "--report"})
        check_refused({"study", scenario, option, file}, {file + ": is ", std::string("written by ") + option});
  check_refused({"study", first, "--output", step}, {"step.yaml: is read here and written by --output"});
  // Before the work, in which the first one would be refused.
  const std::string bad = folder.write("bad.yaml", std::string(kStepScenario) + "model: llama-2-7b\nmachine: absent\n");
  const std::string bad_first = folder.write("bad_first.yaml", read(bad) + "then: [step.yaml]\n");
  check_refused({"study", bad, step, "--output", machine}, {machine + ": is read here"});
  check_refused({"study", bad_first, "--output", machine}, {machine + ": is read here"});
  for (const char* option : {"--points", "--journal"})
    check_refused({"study", search, option, machine}, {machine + ": is read here and written by " + option});
  CHECK(read(machine) == machine_text);
  CHECK(read(folder.path("model/model.safetensors")) == "weights");
  for (int again = 0; again < 2; ++again)
    CHECK(run_dculab({"study", step, "--output", folder.path("model/answer")}).exit_code == 0);
}

TEST_CASE("requests, accuracy and machines that other files name are not written") {
  const Folder folder;
  const std::string requests = folder.write("requests.csv", "arrival,prompt_tokens,output_tokens\n0,10,2\n0,20,2\n");
  const std::string served = folder.write("served.yaml",
                                          "schema: dculab/scenario/1\nquestion: How fast?\nmodel: "
                                          "llama-2-7b\nmachine: z100\nworkload: {requests: 2, file: requests.csv}\n");
  check_refused({"simulate", served, "--chrome-trace", requests},
                {"requests.csv: is read here and written by --chrome"});
  check_refused({"recommend", served, "--output", requests}, {"requests.csv: is read here and written by --output"});

  const std::string accuracy = folder.write("accuracy.csv", "head\n");
  const std::string groups = folder.write(
      "groups.yaml",
      "schema: dculab/scenario/1\nquestion: Which group?\nmodel: llama-2-7b\nmachine: z100\n"
      "workload: {requests: 4, prompt_tokens: 10, output_tokens: 2}\nsweep: {model.num_key_value_heads: [8, 32]}\n"
      "accuracy: {file: " +
          accuracy + ", model: llama-2-7b}\n");
  check_refused({"study", groups, "--output", accuracy}, {"accuracy.csv: is read here and written by --output"});

  std::string points = one_published_point();
  const std::size_t named = points.find(",mi300x,");
  REQUIRE(named != std::string::npos);
  const std::string machine = folder.write("m.yaml", read(DCULAB_SOURCE_DIR "/hwmodels/z100.yaml"));
  points.replace(named + 1, std::string("mi300x").size(), machine);
  check_refused({"validate", "--points", folder.write("points.csv", points), "--output", machine},
                {"m.yaml: is read here and written by --output"});
}

}  // namespace
}  // namespace dculab::cli::test
