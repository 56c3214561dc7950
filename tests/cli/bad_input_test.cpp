// Bad input: exit code 2, one line that names the file or the option, nothing on standard output, nothing written.
#include <filesystem>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

Arguments predict(const Arguments& more) {
  Arguments arguments{"predict", "--model", "llama-2-7b", "--machine", "z100"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Arguments run_tiny(const Arguments& more) {
  Arguments arguments{"run", "--model", "dculab-tiny", "--max-tokens", "4"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("names that are not known, with those that are") {
  check_refused({"predict", "--model", "no-model", "--machine", "z100"},
                {"'no-model'", "`dculab list models` has the "});
  check_refused({"predict", "--model", "llama-2-7b", "--machine", "no-machine"},
                {"'no-machine'", "`dculab list machines` has the "});
  check_refused({"study", "no-scenario"}, {"'no-scenario'", "`dculab list scenarios` has the "});
  check_refused({"show", "nothing"}, {"'nothing'", "`dculab list` has all names"});
  check_refused({"run", "--model", "llama-2-7b", "--prompt", "hi"}, {"llama-2-7b", "no weights"});
}

TEST_CASE("commands and options that do not exist are named, not what they hide", "[main]") {
  check_refused({"predcit", "--model", "llama-2-7b"}, {"predcit", "dculab --help"});
  check_refused({"predict", "--machin", "z100"}, {"--machin z100", "dculab predict --help"});
  check_refused(predict({"--bogus"}), {"--bogus"});
  check_refused({"tables", "intensity", "--phases", "decode"}, {"--phases", "dculab tables intensity --help"});
  check_refused({"predict", "--model", "llama-2-7b"}, {"--machine is required"});
}

TEST_CASE("values that an option does not take") {
  check_refused(predict({"--format", "jsn"}), {"--format: 'jsn' is not known; did you mean 'json'?"});
  check_refused(predict({"--phase", "both"}), {"--phase", "both", "prefill"});
  check_refused(predict({"--batch", "x"}), {"--batch", "x"});
  for (const char* option : {"--batch", "--context", "--block-size", "--kv-heads"})
    for (const char* value : {"0", "-3"}) check_refused(predict({option, value}), {option, value});
  check_refused(predict({"--block-size", "48"}), {"--block-size 48", "power of two"});
  check_refused(predict({"--weights", "f99"}), {"--weights f99"});
  check_refused(predict({"--kv-heads", "5"}), {"num_key_value_heads (5)"});
  check_refused(predict({"--context", "4097"}), {"4097", "max_position_embeddings = 4096"});
  check_refused({"tables", "footprint", "--model", "llama-2-7b", "--dtype", "f99"}, {"--dtype", "'f99'"});
  check_refused({"tables", "footprint", "--model", "llama-2-7b", "--kv-heads", "0"}, {"--kv-heads"});
  check_refused({"bench", "--model", "dculab-tiny", "--warm-up", "-1"}, {"--warm-up"});
  check_refused({"bench", "--model", "dculab-tiny", "--context", "16,0"}, {"--context"});
  check_refused({"bench", "--workload", "requests.csv"}, {"requests.csv is a trace of requests; give a scenario"});
}

TEST_CASE("--set that is broken") {
  check_refused(predict({"--set", "block_size"}), {"--set block_size", "key=value"});
  check_refused(predict({"--set", "kv_cache.blocksize=16"}), {"--set kv_cache.blocksize=16", "unknown key"});
  check_refused(predict({"--set", "kv_cache.block_size=48"}), {"--set kv_cache.block_size=48", "power of two"});
  check_refused(predict({"--set", "kv_cache.block_size=[16"}), {"--set kv_cache.block_size=[16"});
  check_refused({"study", "llama3_on_dcu", "--set", "workload.batch=none"}, {"--set workload.batch=none"});
}

TEST_CASE("sizes beyond the ceilings are refused with the ceiling, before memory is taken") {
  check_refused(predict({"--batch", "65537"}), {"--batch 65537", "at most 65536"});
  check_refused(predict({"--context", "16777217"}), {"--context 16777217", "at most 16777216"});
  check_refused({"tables", "intensity", "--model", "llama-2-7b", "--tokens", "16777217"},
                {"--tokens", "at most 16777216"});
  check_refused(predict({"--set", "model.num_hidden_layers=10001"}), {"num_hidden_layers must be at most 10000"});
  check_refused(predict({"--set", "model.num_attention_heads=1048576"}), {"num_attention_heads * head_dim"});
  check_refused(predict({"--set", "machine.memory.DRAM.bandwidth=1e-300 GB/s"}), {"at least 1 kB/s"});
  check_refused(predict({"--set", "machine.sustained.cache_bandwidth=1e-308"}), {"at least 0.0001 and at most 1"});
  check_refused(predict({"--set", "stack.reached.attention_compute=1e-308"}), {"at least 0.0001 and at most 1"});
  const Arguments serve{"simulate", "serving/llama3_on_z100", "--set"};
  const auto with = [&serve](const std::string& change) {
    Arguments arguments = serve;
    arguments.push_back(change);
    return arguments;
  };
  check_refused(with("engine.swap_space=1e7 GiB"), {"engine.swap_space", "at most 1024 TiB"});
  check_refused(with("deployment={tensor_parallel_size: 1024, data_parallel_size: 65}"), {"at most 65536"});
  check_refused(run_tiny({"--prompt", "hi", "--swap-space", "2000 TiB"}), {"--swap-space", "2000 TiB", "available"});
  check_refused(run_tiny({"--prompt", "hi", "--max-num-seqs", "65537"}), {"max_num_seqs", "at most 65536"});
}

TEST_CASE("every command that takes threads takes at most 4096") {
  for (const Arguments& command :
       {run_tiny({"--prompt", "hi"}), Arguments{"bench", "--model", "dculab-tiny"}, Arguments{"probe", "--quick"},
        Arguments{"evaluate", "--model", "dculab-tiny"}, Arguments{"simulate", "serving/llama3_on_z100"},
        Arguments{"study", "quickstart"}, Arguments{"quantize", "--model", "dculab-tiny"},
        Arguments{"regroup", "--model", "dculab-tiny"}}) {
    Arguments arguments = command;
    arguments.insert(arguments.end(), {"--threads", "4097"});
    check_refused(arguments, {"--threads", "at most 4096, not 4097"});
  }
}

TEST_CASE("what the engine cannot serve is refused before a word is printed") {
  const Folder folder;
  std::string words;
  for (int word = 0; word < 3000; ++word) words += "word ";
  check_refused(run_tiny({"--prompt", words}), {"--prompt", "max_position_embeddings (1024)"});
  check_refused(run_tiny({"--prompt", "caf\xe9"}), {"--prompt: ", "not UTF-8 from byte 4 on"});
  const std::string file = folder.write("prompts.txt", "Short\n");
  check_refused(run_tiny({"--prompts", folder.path("missing.txt")}), {folder.path("missing.txt")});
  check_refused(run_tiny({"--prompts", folder.write("empty.txt", "\n")}), {"empty.txt", "no prompts"});
  check_refused(run_tiny({"--prompt", "hi", "--prompts", file}), {"--prompt", "--prompts"});
  check_refused(run_tiny({"--prompt", "hi", "--kv-cache-memory", "100000 GiB"}),
                {"--kv-cache-memory", "100000 GiB", "available"});
  check_refused(run_tiny({"--prompt", "hi", "--kv-cache-memory", "100"}), {"--kv-cache-memory", "no unit"});
  check_refused(run_tiny({"--prompt", "hi", "--kv-cache-memory", "1 B"}), {"KV cache", "single block"});
  check_refused(run_tiny({"--prompt", "hi", "--block-size", "3"}), {"block_size", "3"});
  check_refused(run_tiny({"--prompt", "hi", "--kv-cache-dtype", "int4"}), {"int4", "f16"});
  check_refused(run_tiny({"--prompt", "hi", "--kv-cache-dtype", "kivi4", "--kv-residual-tokens", "100"}),
                {"kv_residual_tokens must be 32, 64, 96 or 128, not 100"});
}

TEST_CASE("a file that cannot be written is refused before the work, and nothing is left", "[main]") {
  const Folder folder;
  const std::string missing = folder.path("missing/result");
  check_refused(predict({"--output", missing}), {"--output", missing});
  check_refused(run_tiny({"--prompt", "hi", "--output", missing}), {"--output", missing});
  check_refused({"bench", "--model", "dculab-tiny", "--trace", missing}, {"--trace", missing});
  check_refused({"probe", "--quick", "--machine-file", missing}, {"--machine-file", missing});
  check_refused({"study", "quickstart", "--measure", "--trace", missing}, {"--trace", missing});
  check_refused(predict({"--output", std::filesystem::path(folder.path(".")).parent_path()}), {"--output", "folder"});
  CHECK(folder.entries().empty());
}

TEST_CASE("a command that fails leaves an older result alone") {
  const Folder folder;
  const std::string older = folder.write("result.json", "older");
  check_refused(predict({"--context", "9999", "--output", older}), {"9999"});
  CHECK(read(older) == "older");
  const std::string broken = folder.write("broken.jsonl", "{\"schema\":\n");
  check_refused({"calibrate", broken, "--machine", "z100", "--machine-file", folder.path("machine.yaml")},
                {broken + ":1"});
  check_refused({"validate", broken, "--machine", "z100", "--output", folder.path("scores.json")}, {broken + ":1"});
  check_refused({"validate"}, {"--points"});
  CHECK(folder.entries() == std::vector<std::string>{"broken.jsonl", "result.json"});
}

TEST_CASE("host is a machine only after it was probed") {
  check_refused({"study", "quickstart"}, {"quickstart.yaml", "--measure", "--host"});
}

// Each begins with "# expect: " and what follows the file's path in the message, with line and column.
TEST_CASE("a bad machine or scenario file is refused with its line") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DCULAB_SOURCE_DIR "/tests/bad/yaml")) {
    const std::string file = entry.path().string();
    const std::string text = read(file), mark = "# expect: ";
    REQUIRE(text.starts_with(mark));
    const std::string expected = text.substr(mark.size(), text.find('\n') - mark.size());
    const bool is_machine = entry.path().filename().string().starts_with("machine_");
    const std::vector<Arguments> uses =
        is_machine ? std::vector<Arguments>{{"show", file}, {"predict", "--model", "llama-2-7b", "--machine", file}}
                   : std::vector<Arguments>{{"study", file}};
    for (const Arguments& arguments : uses) {
      INFO(arguments.front() << " " << file);
      const Finished done = run_dculab(arguments);
      CHECK(done.exit_code == 2);
      CHECK(done.out.empty());
      CHECK_THAT(done.err, ContainsSubstring(file));
      CHECK_THAT(done.err, ContainsSubstring(expected));
    }
    ++count;
  }
  CHECK(count >= 30);
}

// Each folder has expected_error.txt: the whole message, {folder} for its path.
TEST_CASE("a bad checkpoint is refused with its file") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DCULAB_SOURCE_DIR "/tests/bad/checkpoint")) {
    const std::string folder = entry.path().string();
    const std::string pattern = read(folder + "/expected_error.txt"), placeholder = "{folder}";
    const std::size_t place = pattern.find(placeholder);
    REQUIRE(place != std::string::npos);
    const std::size_t rest = place + placeholder.size();
    const std::string expected =
        pattern.substr(0, place) + folder + pattern.substr(rest, pattern.find('\n', rest) - rest) + "\n";
    INFO(folder);
    const Finished done = run_dculab({"bench", "--model", folder, "--context", "4", "--repeats", "1"});
    CHECK(done.exit_code == 2);
    CHECK(done.out.empty());
    CHECK(done.err == "dculab: " + expected);
    ++count;
  }
  CHECK(count >= 30);
}

TEST_CASE("an emulated GPU is no machine, and --like is of a machine file") {
  const Folder folder;
  const std::string file = folder.path("machine.yaml");
  check_refused({"probe", "--device", "host-gpu", "--machine-file", file}, {"--machine-file", "emulates a GPU"});
  check_refused({"probe", "--device", "host-gpu", "--like", "mi50", "--machine-file", file}, {"emulates a GPU"});
  check_refused({"probe", "--device", "hip:0", "--like", "no-machine", "--machine-file", file},
                {"'no-machine'", "`dculab list machines` has the "});
  check_refused({"probe", "--device", "hip:0", "--like", "mi50"}, {"--like", "--machine-file"});
  check_refused({"probe", "--like", "mi50"}, {"--like", "for GPUs"});
  check_refused({"probe", "--device", "host-gpu", "--quick"}, {"--quick", "CPUs"});
  check_refused({"probe", "--device", "gpu"}, {"--device", "'gpu'"});
  CHECK(folder.entries().empty());

  const Finished shown = run_dculab({"probe", "--device", "host-gpu"});
  CHECK(shown.exit_code == 0);
  CHECK(shown.out.find("EMULATED") != std::string::npos);
}

TEST_CASE("points of which none can be predicted are no score") {
  const Folder folder;
  const std::string head =
      "id,kind,machine,devices,software,model,weights,kv_dtype,kv_block_size,batch,prompt_tokens,output_tokens,"
      "context_tokens,m,n,k,heads,kv_heads,head_size,value,unit,source,notes\n";
  check_refused({"validate", "--points", folder.write("none.csv", head)}, {"none.csv", "has no points"});
  const std::string row = "a,matmul,mi300,1,x,,fp16,,,1,,,,64,4096,4096,,,,0.00019,s,here,\n";
  check_refused({"validate", "--points", folder.write("other.csv", head + row)},
                {"no point of the file can be predicted", "no machine 'mi300'"});
}

TEST_CASE("a trace of other layers or of another machine gives no decision regret") {
  const Folder folder;
  const std::string trace = folder.path("t.jsonl");
  (void)run_for_json({"bench", "--model", "dculab-tiny", "--batch", "1", "--context", "32", "--block-size", "16,64",
                      "--repeats", "1", "--warm-up", "0", "--trace", trace});
  check_refused({"recommend", "--model", "dculab-tiny", "--prompt-tokens", "100", "--output-tokens", "20", "--machine",
                 "x86-server", "--trace", trace},
                {"--trace", "was measured on 'host'"});
  std::string own = kGenerousCpu;
  own.replace(own.find("name: "), own.find('\n', own.find("name: ")) - own.find("name: "), "name: host");
  const std::string host = folder.write("host.yaml", own);
  check_refused({"recommend", "--model", "llama-3.2-1b", "--machine", host, "--trace", trace},
                {"--trace", "measured with dculab-tiny", "llama-3.2-1b"});
}

}  // namespace
}  // namespace dculab::cli::test
