// `dculab quantize`: a folder that runs, what is said about it, and nothing written on bad input.
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

namespace dculab::cli::test {
TEST_CASE("a quantized model says what was lost, and runs with either kind of activations", "[main]") {
  const Folder folder;
  const std::string output = folder.path("int4");
  const Json report = run_for_json({"quantize", "--model", kTextModel, "--bits", "4", "--group-size", "16",
                                    "--calibration", kTextModel + "/prompt.txt", "--output", output});
  REQUIRE(report["schema"] == "dculab/quantize/1");
  REQUIRE(report["matrices"].size() == 14);
  for (const Json& matrix : report["matrices"]) {
    CHECK(matrix["relative_error"] > 0.0);
    CHECK(matrix["relative_error"] < 0.3);
    CHECK(matrix["bits_per_weight"] == 4 + 20.0 / 16);
  }
  CHECK(folder.entries() == std::vector<std::string>{"int4"});
  CHECK(Json::parse(read(output + "/config.json"))["quantization_config"]["bits"] == 4);
  check_refused({"run", "--model", output, "--prompt", "once", "--max-tokens", "4", "--activations", "bf16"},
                {"activations in bf16", "needs BF16 weights"});
  for (const char* mode : {"exact", "int8"}) {
    const Json run = run_for_json({"run", "--model", output, "--prompt", "once upon", "--max-tokens", "4",
                                   "--ignore-eos", "--activations", mode});
    CHECK(run["completions"][0]["token_ids"].size() == 4);
  }
  const Json bench = run_for_json(
      {"bench", "--model", output, "--phase", "decode", "--context", "16", "--repeats", "1", "--activations", "int8"});
  CHECK(bench["points"].size() == 1);
}

TEST_CASE("scales of an FP8 KV cache are found for a model whose weights stay as they are") {
  const Folder folder;
  const std::string output = folder.path("scaled"), text = kTextModel + "/prompt.txt";
  const Json report = run_for_json({"quantize", "--model", kTextModel, "--method", "none", "--kv-cache-dtype",
                                    "fp8_e4m3", "--calibration", text, "--output", output});
  CHECK(!report.contains("matrices"));
  REQUIRE(report["kv_scales"].size() == 2);
  for (const Json& layer : report["kv_scales"]) {
    CHECK(layer["k_scale"].get<double>() * 224 == Approx(layer["largest_key"].get<double>()));
    CHECK(layer["v_scale"].get<double>() * 224 == Approx(layer["largest_value"].get<double>()));
  }
  CHECK(!Json::parse(read(output + "/config.json")).contains("quantization_config"));
  const Json run = run_for_json({"run", "--model", output, "--prompt", "once upon", "--max-tokens", "4", "--ignore-eos",
                                 "--kv-cache-dtype", "fp8_e4m3"});
  CHECK(run["completions"][0]["token_ids"].size() == 4);
}

TEST_CASE("what KVQuant's caches need to know is found, beside quantized weights or alone") {
  const Folder folder;
  const std::string text = folder.path("text");
  std::string words;
  for (int i = 0; i < 300; ++i) words += "once upon " + std::to_string(i) + " times ";
  folder.write("text", words);
  for (const Arguments& method : {Arguments{"--method", "none"}, {"--method", "rtn", "--group-size", "16"}}) {
    const std::string output = folder.path(method[1]);
    Arguments asked{"quantize", "--model",  kTextModel, "--kv-cache-dtype", "kvquant3", "--calibration",
                    text,       "--output", output};
    asked.insert(asked.end(), method.begin(), method.end());
    const Json report = run_for_json(asked);
    CHECK(!report.contains("kv_scales"));
    REQUIRE(report["kv_calibration"].size() == 2);
    for (const Json& layer : report["kv_calibration"]) CHECK(layer["largest_k_half_range"].get<double>() > 0);
    for (const char* dtype : {"kvquant4", "kvquant2"}) {
      const Json run = run_for_json({"run", "--model", output, "--prompt", "once upon", "--max-tokens", "4",
                                     "--ignore-eos", "--kv-cache-dtype", dtype});
      CHECK(run["completions"][0]["token_ids"].size() == 4);
    }
  }
  check_refused({"run", "--model", kTextModel, "--prompt", "once", "--kv-cache-dtype", "kvquant2"},
                {"quantize --method none --kv-cache-dtype kvquant2"});
  // A model that is made of one that has it takes it along.
  const std::string again = folder.path("again"), file = "/kv_cache.safetensors";
  static_cast<void>(run_for_json(
      {"quantize", "--model", folder.path("none"), "--method", "rtn", "--group-size", "16", "--output", again}));
  CHECK(read(again + file) == read(folder.path("none") + file));
  // Whoever does not need it does not read it.
  folder.write("again" + file, "broken");
  const auto stored_in = [&](const char* dtype) {
    return Arguments{"run", "--model", again, "--prompt", "once", "--max-tokens", "2", "--kv-cache-dtype", dtype};
  };
  CHECK(run_dculab(stored_in("fp8_e4m3")).exit_code == 0);
  check_refused(stored_in("kvquant4"), {"kv_cache.safetensors"});
}

TEST_CASE("bad requests to quantize are refused and leave nothing behind") {
  const Folder folder;
  const std::string output = folder.path("out");
  const auto refuse = [&](const Arguments& more, const std::vector<std::string>& parts) {
    Arguments arguments{"quantize", "--model", kTextModel, "--output", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(arguments, parts);
    CHECK(folder.entries().empty());
  };
  const std::string text = kTextModel + "/prompt.txt";
  refuse({"--group-size", "16"}, {"gptq needs calibration text"});
  refuse({"--method", "rtn", "--group-size", "24"}, {"q_proj", "groups of 24 do not divide its 32 in-features"});
  refuse({"--method", "rtn", "--bits", "3", "--group-size", "16"}, {"multiples of 32"});
  refuse({"--method", "zero-point", "--sym"}, {"--sym"});
  refuse({"--method", "rtn", "--damp", "5"}, {"--damp", "does nothing with --method rtn"});
  refuse({"--calibration", text, "--alpha", "0.3"}, {"--alpha", "does nothing with --method gptq"});
  refuse({"--method", "none"}, {"--method", "none does nothing without --kv-cache-dtype"});
  refuse({"--method", "none", "--kv-cache-dtype", "fp8_e4m3"}, {"--kv-cache-dtype", "needs --calibration"});
  refuse({"--method", "none", "--kv-cache-dtype", "kvquant2", "--calibration", text}, {"fewer than 256"});
  refuse({"--method", "none", "--kv-cache-dtype", "fp8_e4m3", "--calibration", text, "--fisher", text},
         {"--fisher", "needs --kv-cache-dtype kvquant4"});
  refuse({"--method", "none", "--kv-cache-dtype", "kivi2", "--calibration", text}, {"--kv-cache-dtype", "kivi2"});
  refuse({"--method", "none", "--kv-cache-dtype", "fp8_e4m3", "--calibration", text, "--bits", "4"},
         {"--bits", "does nothing with --method none"});
  refuse({"--method", "rtn", "--one-pass"}, {"--one-pass", "--calibration"});
  refuse({"--group-size", "16", "--calibration", text, "--damp", "nan"}, {"--damp", "must be a number"});
  refuse({"--method", "rtn", "--group-size", "16", "--desc-act"}, {"--desc-act"});
  refuse({"--group-size", "16", "--calibration", text, "--damp", "0"}, {"Hessian is singular", "q_proj"});
  check_refused({"run", "--model", kTextModel, "--prompt", "once", "--activations", "int8"},
                {"activations in int8", "needs quantized weights"});
  check_refused({"run", "--model", kTextModel, "--prompt", "once", "--activations", "fp8"}, {"exact, int8 or bf16"});
  std::filesystem::create_directory(output);
  folder.write("out/notes.txt", "mine");
  check_refused({"quantize", "--model", kTextModel, "--method", "rtn", "--group-size", "16", "--output", output},
                {"exists already"});
}

}  // namespace dculab::cli::test
