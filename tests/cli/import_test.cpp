// `dculab import` on the synthetic profiles of tests/data/profiles, whose times are known: kernel k of step s takes
// BASE[k] + 10 s ns (see make_profiles.py there).
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kProfiles = DCULAB_SOURCE_DIR "/tests/data/profiles/";

Arguments import(const std::string& file, const Arguments& more = {}) {
  Arguments arguments{"import", file, "--model", "dculab-tiny", "--machine", "z100", "--context", "200"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

double seconds(const Json& row, const std::string& op) {
  for (const Json& each : row["ops"])
    if (each["op"] == op) return each["seconds"];
  FAIL("no op " << op);
  return 0;
}

TEST_CASE("import finds the steps of dculab's own kernels in rocprof's table") {
  const Json result = run_for_json(import(kProfiles + "rocprof_dculab.csv"));
  CHECK(result["schema"] == "dculab/import/1");
  CHECK(result["profiler"] == "rocprof");
  CHECK(result["steps_found"] == 12);
  CHECK(result["steps_imported"] == 11);  // the last has no next step
  REQUIRE(result["rows"].size() == 1);
  const Json& row = result["rows"][0];
  CHECK(row["context_tokens"] == 205);
  CHECK(row["repeats"] == 11);
  // 53 kernels of step 5, 52 gaps of 500 ns, 20000 ns until the next step.
  CHECK(row["step_seconds"].get<double>() == Approx((747000 + 53 * 50 + 52 * 500 + 20000) * 1e-9));
  CHECK(seconds(row, "embed_tokens") == Approx(6050e-9));
  CHECK(seconds(row, "rope_and_cache") == Approx(4 * (4050 + 5050) * 1e-9));
  CHECK(seconds(row, "attention_decode") == Approx(4 * (30050 + 6050) * 1e-9));
  CHECK(seconds(row, "gate_up_proj") == Approx(4 * (40050 + 3050) * 1e-9));
  CHECK(seconds(row, "lm_head") == Approx(60050e-9));
  CHECK(result["other_kernels"] == 22);
  CHECK(result["others"][0]["what"] == "sampling");
}

TEST_CASE("import reads every profiler's layout, and the steps are the same") {
  const std::vector<std::pair<std::string, std::string>> files{{"rocprofv3_vllm.csv", "rocprofv3"},
                                                               {"hipprof_pmc_vllm.csv", "hipprof"},
                                                               {"hipprof_database_vllm.csv", "hipprof"},
                                                               {"hipprof_trace_vllm.json", "hipprof"},
                                                               {"nsys_vllm.csv", "nsys"}};
  for (const auto& [file, profiler] : files) {
    INFO(file);
    for (const std::string& chosen : {std::string("auto"), profiler}) {
      const Json result = run_for_json(import(kProfiles + file, {"--profiler", chosen}));
      CHECK(result["profiler"] == profiler);
      CHECK(result["steps_found"] == 4);
      CHECK(result["steps_imported"] == 3);
      const Json& row = result["rows"][0];
      CHECK(seconds(row, "qkv_proj") == Approx(4 * 20010e-9));
      CHECK(seconds(row, "down_proj") == Approx(4 * 25010e-9));
      CHECK(seconds(row, "lm_head") == Approx(60010e-9));
      CHECK(seconds(row, "embed_tokens") == Approx(profiler == "hipprof" ? 0 : 6010e-9));
      CHECK(result["phase_is_told"] == (profiler != "nsys"));
    }
  }
}

// Real ones, of other people's MI300X.
TEST_CASE("import finds the steps of SGLang's and vLLM's profiles under ROCm") {
  const std::string foreign = DCULAB_SOURCE_DIR "/tests/data/foreign/profiles/";
  const auto decoded = [&foreign](const std::string& file, const std::string& model) {
    return run_for_json({"import", foreign + file, "--model", model, "--machine", "mi300x", "--context", "1024",
                         "--step-time", "span"});
  };
  const Json dense = decoded("kineto_sglang_qwen3-8b_decode.json.gz", "qwen3-8b");
  CHECK(dense["steps_imported"] == 1);
  CHECK(dense["rows"][0]["step_seconds"].get<double>() == Approx(9.92e-3).epsilon(0.01));
  CHECK(dense["other_share"] < 0.05);
  for (const Json& op : dense["rows"][0]["ops"]) CHECK(op["seconds"] > 0);
  // The first products of its experts compute the activation, too.
  const Json experts = decoded("kineto_vllm_decode_full_graph_execution.json.gz", "gpt-oss-20b");
  CHECK(experts["steps_imported"] == 1);
  CHECK(experts["other_share"] < 0.05);
  for (const Json& op : experts["rows"][0]["ops"]) {
    const bool is_fused = op["op"] == "embed_tokens" || op["op"].get<std::string>().starts_with("experts_silu");
    CHECK((op["seconds"] == 0) == is_fused);
  }
}

TEST_CASE("unknown kernels are named, and the user can say what they serve") {
  const Folder folder;
  std::string text = read(kProfiles + "rocprof_dculab.csv");
  const std::string known = "silu_and_mul_kernel";
  for (std::size_t at = text.find(known); at != std::string::npos; at = text.find(known, at))
    text.replace(at, known.size(), "swish_kernel");
  const std::string file = folder.write("unknown.csv", text);
  check_refused(import(file), {"no whole step", "Unknown are, by their time: ", "swish_kernel", " (48, ",
                               "--kernel-name PART=OP", "--list-kernels"});
  const Json result = run_for_json(import(file, {"--kernel-name", "swish=activation", "argmax=sampling"}));
  CHECK(result["steps_imported"] == 11);
  CHECK(result["rows"] == run_for_json(import(kProfiles + "rocprof_dculab.csv"))["rows"]);
  check_refused(import(file, {"--kernel-name", "swish=swish"}), {"--kernel-name", "is not PART=OP", "activation"});
}

TEST_CASE("what import writes, validate and calibrate read", "[main]") {
  const Folder folder;
  for (const char* file : {"rocprof_dculab.csv", "rocprofv3_vllm.csv", "hipprof_trace_vllm.json", "nsys_vllm.csv"}) {
    INFO(file);
    const std::string trace = folder.path(std::string(file) + ".jsonl");
    const Json imported = run_for_json(import(kProfiles + file, {"--trace", trace}));
    const Json scores = run_for_json({"validate", trace, "--machine", "z100"});
    REQUIRE(scores["points"].size() == 1);
    CHECK(scores["refused"].empty());
    CHECK(scores["points"][0]["id"] == imported["rows"][0]["id"]);
    CHECK(scores["points"][0]["measured"].get<double>() == Approx(imported["rows"][0]["step_seconds"].get<double>()));
  }
  const std::string trace = folder.path("rows.jsonl"), machine = folder.path("z100.yaml");
  const Json rows = run_for_json(import(kProfiles + "rocprof_dculab.csv", {"--steps-per-row", "1", "--trace", trace}));
  CHECK(rows["rows"].size() == 11);
  CHECK(rows["rows"][10]["context_tokens"] == 210);
  const Json fitted = run_for_json({"calibrate", trace, "--machine", "z100", "--machine-file", machine});
  CHECK(fitted["refused"].empty());
  CHECK(fitted["fitted"]["median_abs_error"] < 0.1);
  const Json before = run_for_json({"validate", trace, "--machine", "z100"});
  const Json after = run_for_json({"validate", trace, "--machine", machine});
  CHECK(after["summary"]["median_abs_error"] < before["summary"]["median_abs_error"]);
}

TEST_CASE("the trace says where its times come from") {
  const Folder folder;
  const std::string trace = folder.path("t.jsonl");
  (void)run_for_json(import(kProfiles + "nsys_vllm.csv", {"--trace", trace, "--growth", "0", "--step-time", "span"}));
  const std::string text = read(trace);
  const Json header = Json::parse(text.substr(0, text.find('\n')));
  CHECK(header["machine"] == "z100");
  CHECK(header["device"] == "NVIDIA A100-SXM4-80GB (0)");
  CHECK(header["build"] == "imported from nsys_vllm.csv");
  CHECK_THAT(header["timing"].get<std::string>(),
             ContainsSubstring(
                 "GPU timestamps of nsys, median of 4 steps, from a step's first kernel to the end of its last"));
}

TEST_CASE("import refuses what does not fit the profile") {
  const std::string file = kProfiles + "rocprof_dculab.csv";
  check_refused(import(file, {"--phase", "prefill"}), {file + ": no whole step of dculab-tiny (4 layers, 12 ops)"});
  check_refused({"import", file, "--model", "tinyllama-1.1b", "--machine", "z100"},
                {file + ": no whole step of tinyllama-1.1b (22 layers"});
  check_refused(import(file, {"--max-other", "0.005"}),
                {file, "22 kernels that serve no op take 0.8 %", "--max-other"});
  check_refused(import(file, {"--skip-steps", "12"}), {"--skip-steps 12", "holds 12 whole steps"});
  check_refused(import(file, {"--skip-steps", "11"}), {"12 whole steps, none with another right behind it"});
  check_refused(import(file, {"--profiler", "nsys"}), {file + ": no table of kernels of nsys"});
  check_refused(import(file, {"--profiler", "perf"}), {"--profiler", "perf", "hipprof"});
  check_refused(import(file, {"--new-tokens", "2"}), {"--new-tokens 2", "--phase prefill"});
  check_refused(import(file, {"--phase", "prefill", "--new-tokens", "300"}), {"--new-tokens 300", "--context 200"});
  check_refused(import(kProfiles + "missing.csv"), {kProfiles + "missing.csv"});
  check_refused({"import", file, "--machine", "z100"}, {"--model is required"});
  check_refused({"import", "--model", "dculab-tiny", "--machine", "z100"}, {"FILE is required"});
}

TEST_CASE("a refused import writes no trace") {
  const Folder folder;
  check_refused(import(kProfiles + "make_profiles.py", {"--trace", folder.path("t.jsonl")}), {"no table of kernels"});
  CHECK(folder.entries().empty());
}

// The first line is "# expect: " and what follows the file's path in the message.
TEST_CASE("a bad profile is refused with its line") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DCULAB_SOURCE_DIR "/tests/bad/profile")) {
    const std::string file = entry.path().string();
    INFO(file);
    const std::string text = read(file), mark = "# expect: ";
    REQUIRE(text.starts_with(mark));
    const Finished done = run_dculab(import(file));
    CHECK(done.exit_code == 2);
    CHECK(done.out.empty());
    CHECK(done.err == "dculab: " + file + text.substr(mark.size(), text.find('\n') - mark.size()) + "\n");
    ++count;
  }
  CHECK(count >= 12);
}

}  // namespace
}  // namespace dculab::cli::test
