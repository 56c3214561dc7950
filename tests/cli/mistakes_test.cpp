// The mistakes that people made who tried dculab: each message says what is wrong, where, and what to do instead.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kQuestion =
    "schema: dculab/scenario/1\n"
    "question: How fast?\n"
    "model: llama-3-8b\n"
    "machine: z100\n"
    "workload: {phase: decode, batch: 16, context_tokens: 2000}\n";
const std::string kConfig = DCULAB_SOURCE_DIR "/scenarios/models/llama-3-8b/config.json";
const std::string kMachine = DCULAB_SOURCE_DIR "/hwmodels/k100-ai.yaml";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  REQUIRE(text.find(what) != std::string::npos);
  return text.replace(text.find(what), what.size(), by);
}

Arguments predict_llama(const Arguments& more) {
  Arguments arguments{"predict", "--model", "llama-3-8b", "--machine", "z100"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Arguments with_model(const std::string& model) { return {"predict", "--model", model, "--machine", "z100"}; }
Arguments with_machine(const std::string& machine) {
  return {"predict", "--model", "llama-3-8b", "--machine", machine};
}

// A model folder whose config.json is `config`.
std::string model_folder(const Folder& folder, const std::string& name, const std::string& config) {
  std::filesystem::create_directory(folder.path(name));
  folder.write(name + "/config.json", config);
  return folder.path(name);
}

TEST_CASE("mistakes in the keys of a file", "[main]") {
  const Folder folder;
  const std::string keys = replaced(kQuestion, "batch: 16, context_tokens: 2000", "batchs: 16, context: 2000");
  const Finished unknown = run_dculab({"study", folder.write("keys.yaml", keys + "machin: z100\n")});
  CHECK(unknown.exit_code == 2);
  for (const char* const line : {"keys.yaml:5:27: workload.batchs: unknown key; did you mean 'batch'?",
                                 "keys.yaml:5:39: workload.context: unknown key; did you mean 'context_tokens'?",
                                 "keys.yaml:6:1: machin: unknown key; did you mean 'machine'"})
    CHECK_THAT(unknown.err, ContainsSubstring(line));
  const std::string machine = replaced(read(kMachine), "value: 896 GB/s", "value: 896");
  check_refused(with_machine(folder.write("m.yaml", machine)),
                {"m.yaml:49:", "memory.DRAM.bandwidth.value: '896' has no unit; write for example '896 GB/s'"});
  check_refused({"study", folder.write("twice.yaml", kQuestion + "model: qwen2-7b\n")},
                {"twice.yaml:6:1: model: stands twice; keep one"});
  check_refused({"study", folder.write("none.yaml", kQuestion.substr(kQuestion.find('\n') + 1))},
                {"none.yaml:1: schema: missing; write 'schema: dculab/scenario/1' in the first line"});
  check_refused({"study", kMachine},
                {"k100-ai.yaml:4: is a machine (schema: dculab/machine/1), not a scenario; give it "
                 "as --machine"});
  check_refused(with_machine(folder.write("s.yaml", kQuestion)), {"s.yaml:1: is a scenario", "not a machine"});
}

TEST_CASE("mistakes in a file's syntax", "[main]") {
  const Folder folder;
  const std::string tab =
      replaced(kQuestion, "workload: {phase: decode, batch: 16, context_tokens: 2000}", "workload:\n\tbatch: 16");
  check_refused({"study", folder.write("tab.yaml", tab)},
                {"tab.yaml:6: a tab stands in the indentation", "use spaces"});
  check_refused({"study", folder.write("quote.yaml", replaced(kQuestion, "How fast?", "\"How fast?"))},
                {"quote.yaml:2: the quote that begins here is not closed; close it"});
  const std::string early = replaced(kQuestion, "How fast?", "'How fast?") + "weights: 'bf16'\n";
  check_refused({"study", folder.write("early.yaml", early)}, {"early.yaml:2: a quote that begins here is not closed"});
  const std::string config = read(kConfig);
  check_refused(with_model(model_folder(folder, "comment", replaced(config, "{", "{ // from the Hub"))),
                {"comment/config.json:1:3: is not valid JSON (JSON has no comments; remove it)"});
  const std::string comma = config.substr(0, config.find_last_of('}'));
  const std::string trailing = comma.substr(0, comma.find_last_not_of(" \n") + 1) + ",\n}\n";
  check_refused(with_model(model_folder(folder, "comma", trailing)),
                {"comma/config.json:", "a comma stands before '}'; remove it"});
}

TEST_CASE("mistakes in names and options", "[main]") {
  for (const Arguments& arguments : {Arguments{"predct"}, Arguments{"predct", "--model", "llama-3-8b"}})
    check_refused(arguments, {"dculab: no command 'predct'; did you mean 'predict'?"});
  check_refused({"tables"}, {"dculab tables: name one of intensity, footprint, latents; see dculab tables --help"});
  check_refused({"show"}, {"dculab show: what is missing: "});
  check_refused({"list", "modles"}, {"kind: 'modles' is not known; did you mean 'models'?"});
  check_refused(predict_llama({"--phase", "deocde"}), {"--phase: 'deocde' is not known; did you mean 'decode'?"});
  check_refused(predict_llama({"--batch"}), {"--batch needs a value"});
  check_refused(predict_llama({"--machine", "z100l"}), {"--machine is given several times; give it once"});
  check_refused({"help", "predct"}, {"dculab: no command 'predct'; did you mean 'predict'?"});
  check_refused(predict_llama({"--contxt", "5"}), {"--contxt 5; did you mean '--context'? See dculab predict --help"});
  check_refused(predict_llama({"--batchsize", "5"}), {"--batchsize 5; did you mean '--batch'"});
  check_refused(predict_llama({"--requests-per-second", "5"}), {"it is an option of recommend, simulate, study."});
  check_refused(predict_llama({"--kv-cache-dtype", "fp9"}), {"'fp9' is no format of a KV cache; use one of f32, "});
  check_refused(predict_llama({"--batch", "2147483648"}), {"--batch: 2147483648 is too large"});
  check_refused(with_model("Org/Llama3-8B"), {"did you mean 'llama-3-8b'?"});
  CHECK(run_dculab({"study", "--set", "workload.batch=4", "llama3_on_dcu"}).exit_code == 0);
  CHECK_THAT(run_dculab({"study", "llama3_on_dcu", "--set", "workload.batch=5000", "--format", "csv"}).err,
             ContainsSubstring("warning: z100: no point fits in memory"));
  check_refused(predict_llama({"-batch", "5"}), {"did you mean '--batch'?"});
  check_refused({"plan", "--help"}, {"no command 'plan'"});
  CHECK(run_dculab({"predict", "--help"}).exit_code == 0);
  check_refused(predict_llama({"--pipeline-parallel-size", "4"}),
                {"write --set deployment.pipeline_parallel_size=VALUE."});
  CHECK(run_dculab(predict_llama({"--tensor-parallel-size", "2"})).exit_code == 0);
  check_refused(with_model("llama3-8b"), {"no model 'llama3-8b'", "did you mean 'llama-3-8b'?"});
  check_refused(with_machine("k100ai"), {"no machine 'k100ai'", "did you mean 'k100-ai'?"});
  check_refused(with_machine("h100"), {"did you mean 'h100-sxm' or 'h100-pcie'?"});
  check_refused({"show", "k100-a"}, {"nothing is called 'k100-a'", "did you mean 'k100-ai'?"});
  check_refused({"study", "llama3_on_dcus"}, {"no scenario 'llama3_on_dcus'", "did you mean 'llama3_on_dcu'?"});
  check_refused(predict_llama({"--stack", "vlm"}), {"no stack 'vlm'; did you mean 'vLLM'?"});
  for (const Arguments& arguments : {with_machine("K100-AI"), with_model("Llama-3-8B"), Arguments{"show", "K100-AI"},
                                     predict_llama({"--weights", "FP16", "--kv-cache-dtype", "FP8"}),
                                     predict_llama({"--set", "kv_cache.dtype=auto"})})
    CHECK(run_dculab(arguments).exit_code == 0);
  check_refused(predict_llama({"--set", "foo=1"}), {"--set foo=1: foo: unknown key; known are accuracy, "});
  check_refused(predict_llama({"--set", "batch=4"}), {"--set batch=4: batch: unknown key; write it as workload.batch"});
}

TEST_CASE("options of other programs and commands", "[main]") {
  const Arguments recommend{"recommend", "--model", "llama-3-8b"};
  const auto with = [&recommend](const Arguments& more) {
    Arguments all = recommend;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  check_refused(with({"--qps", "5"}), {"did you mean '--requests-per-second'?"});
  check_refused(with({"--tp", "4"}), {"write --set deployment.tensor_parallel_size=VALUE."});
  check_refused(with({"--tp", "4", "--devices", "8"}), {"with --devices it is chosen; leave it out"});
  check_refused(with({"--context", "4096"}), {"requests have --prompt-tokens and --output-tokens; give these."});
  check_refused(with({"--max-model-len", "4096"}), {"write --set model.max_position_embeddings=VALUE to change it."});
  check_refused(with({"--machine", "z100", "--requests-per-second", "3/s"}), {"'3/s' is not a number; write 3"});
  check_refused(with({}), {"needs --machine, or a scenario file"});
  check_refused(with({"--machine", "z100", "--ttft", "2", "s"}),
                {"no scenario 's'; a value and its unit are one word"});
}

TEST_CASE("files and folders that hold nothing of use are named", "[main]") {
  check_refusal(run_in_shell("DCULAB_DATA=/nonexistent \"$@\"", with_machine("z100")),
                {"DCULAB_DATA=/nonexistent: there is no such folder"});
  const Folder folder;
  const std::string chats = folder.write(
      "chats.json", R"([{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]}])");
  check_refused({"simulate", "--model", "qwen2-7b", "--machine", "z100", "--requests", "3", "--dataset-path", chats},
                {"chats.json: no conversation has a prompt and an answer of at least 4 tokens each"});
  const std::string vllm = DCULAB_SOURCE_DIR "/tests/data/foreign/vllm/mi50_vllm_llama3.1-8b_tp2.json";
  check_refused({"import", vllm, "--model", "llama-3.1-8b", "--machine", "mi50"},
                {"is a result of vllm bench", "dculab validate"});
}

TEST_CASE("mistakes in numbers", "[main]") {
  check_refused(predict_llama({"--context", "200000"}),
                {"longer than llama-3-8b allows", "8192", "choose a shorter context"});
  check_refused(predict_llama({"--batch", "-1"}), {"--batch: must be at least 1, not -1"});
  check_refused(predict_llama({"--block-size", "512"}), {"--block-size 512", "at least 1 and at most 256"});
  check_refused(predict_llama({"--block-size", "3"}),
                {"--block-size 3", "'3' is not a power of two; use 1, 2, 4, 8, 16, 32"});
  check_refused(predict_llama({"--kv-heads", "5"}),
                {"--kv-heads 5", "(32) is not a multiple", "use 1, 2, 4, 8, 16 or 32"});
  check_refused({"predict", "--model", "qwen2-7b", "--machine", "z100", "--set", "deployment.tensor_parallel_size=8"},
                {"deployment.tensor_parallel_size=8", "28 query heads do not divide over 8 devices; use 1, 2 or 4"});
  check_refused({"recommend", "--model", "llama-3-8b", "--machine", "z100", "--ttft", "2"},
                {"--ttft 2: slo.ttft: '2' has no unit; write for example '2 s', '2 ms'"});
  check_refused(predict_llama({"--context", "4k"}), {"--context: '4k' is not a whole number; write 4000 or 4096"});
  check_refused(predict_llama({"--batch", "1e3"}), {"--batch: '1e3' is not a whole number; write 1000"});
  check_refused({"run", "--model", "dculab-tiny", "--prompt", "x", "--max-num-seqs", "1e3"},
                {"--max-num-seqs: '1e3' is not a whole number; write 1000"});
  const std::string none_fits = "warning: z100: no point fits in memory (54 sequences do at most)";
  const Folder folder;
  const std::string scenario = folder.write("s.yaml", kQuestion);
  const std::string too_many = run_dculab({"study", scenario, "--set", "workload.batch=5000"}).out;
  CHECK_THAT(too_many, ContainsSubstring(none_fits));
  CHECK_THAT(too_many.substr(too_many.find("In short")), ContainsSubstring("no point fits in memory"));
  CHECK_THAT(run_dculab({"study", scenario}).out, !ContainsSubstring("no point fits"));
}

TEST_CASE("files of another kind than the one that is wanted", "[main]") {
  const Folder folder;
  check_refused(predict_llama({"--report", folder.path("")}), {"--report: ", "is a folder; give a file to write"});
  CHECK(run_dculab(with_model(kConfig)).exit_code == 0);
  check_refused(with_model(folder.path("")), {"no config.json in this folder (--model takes"});
  check_refused(with_model(folder.write("weights.bin", "x")), {"weights.bin: is no model; --model takes"});
  const std::string gguf = folder.write("model.gguf", std::string("GGUF\x03\0\0\0", 8));
  check_refused(with_model(gguf), {"model.gguf: breaks off in its header", "download the file again"});
  check_refused({"show", gguf}, {"model.gguf: breaks off in its header"});
  check_refused({"study", gguf}, {"model.gguf: is a model in GGUF; give it as --model"});
  const std::string vllm = folder.write("vllm.json", R"({"request_throughput": 1.5, "total_input_tokens": 9})");
  for (const Arguments& arguments : {Arguments{"study", vllm}, Arguments{"validate", "--points", vllm}})
    check_refused(arguments, {"vllm.json: is a result of vllm bench serve; give it to `dculab validate`"});
  const std::string mooncake = folder.write(
      "mooncake.jsonl", "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 5, \"hash_ids\": [1]}\n");
  for (const Arguments& arguments : {Arguments{"simulate", mooncake}, Arguments{"validate", "--points", mooncake}})
    check_refused(arguments, {"mooncake.jsonl: is a record of requests; name it as workload.file in a scenario"});
  const Finished replayed =
      run_dculab({"simulate", "--model", "llama-3-8b", "--machine", "k100-ai", "--dataset-path", mooncake});
  CHECK(replayed.exit_code == 0);
}

TEST_CASE("a model without rope_theta is read with the default of the Hub") {
  const Folder folder;
  std::string config = read(kConfig);
  const std::size_t begin = config.find("\"rope_theta\""), end = config.find('\n', begin);
  config.erase(begin, end - begin + 1);
  CHECK(run_dculab(with_model(model_folder(folder, "model", config))).exit_code == 0);
}

}  // namespace
}  // namespace dculab::cli::test
