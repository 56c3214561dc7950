// A KV cache that the engine refuses is priced with a warning by every command that prices, in text and JSON.
#include <algorithm>
#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/cli/search_scenarios.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kRefuses = "predicted although the engine of dculab refuses it: ";
constexpr const char* kNoF32 = "kv_cache_dtype f32 is not supported on the GPU";

// What JSON warns of with these words.
[[nodiscard]] std::vector<std::string> refusals(const Json& json) {
  std::vector<std::string> found;
  if (!json.contains("warnings")) return found;
  for (const Json& warning : json.at("warnings"))
    if (const std::string text = warning; text.starts_with(kRefuses)) found.push_back(text);
  return found;
}

// A model of `heads` heads, and scenarios of it on a machine.
class Scenarios {
 public:
  explicit Scenarios(int heads) : model_(folder_.path("small")) {
    std::filesystem::create_directory(model_);
    folder_.write("small/config.json",
                  R"({"model_type": "llama", "hidden_size": 1280, "intermediate_size": 3072, "num_hidden_layers": 2,
                      "vocab_size": 2048, "max_position_embeddings": 4096, "torch_dtype": "float16",
                      "num_attention_heads": )" +
                      std::to_string(heads) + "}");
  }
  [[nodiscard]] std::string file(const std::string& machine, const std::string& more) const {
    return folder_.write(std::to_string(count_++) + ".yaml", "schema: dculab/scenario/1\nquestion: How long?\nmodel: " +
                                                                 model_ + "\nmachine: " + machine + "\n" + more);
  }

 private:
  Folder folder_;
  std::string model_;
  mutable int count_ = 0;  // of scenarios
};

const std::string kRefusedStep = "workload: {phase: decode, batch: 4, context_tokens: 500}\n";
const std::string kSizes = "sweep: {kv_cache.block_size: [16, 32]}\n";

// Ways of asking: arguments with a scenario that begins with `head`.
[[nodiscard]] std::vector<Arguments> ways(const Scenarios& scenarios, const std::string& machine,
                                          const std::string& head) {
  const auto file = [&](const std::string& more) { return scenarios.file(machine, head + more); };
  return {{"study", file(kRefusedStep + kSizes)},
          {"study", file(kRefusedStep + kSizes + "objective: {maximize: tokens_per_second}\n")},
          {"study", file(kRequests + kSizes + "objective: {maximize: output_tokens_per_second}\n")},
          {"study",
           file(kRefusedStep + "sweep: {machine.memory.DRAM.bandwidth: [1 x, 2 x], kv_cache.block_size: [16, 32]}\n" +
                "choose: [kv_cache.block_size]\n")},
          {"study", file(kRefusedStep + "compare:\n  baseline: 16\n  variants:\n    - {name: \"32\", changes: "
                                        "{kv_cache.block_size: 32}}\n")},
          {"simulate", file(kRequests)},
          {"simulate", file(kRequests + kSizes)},
          {"recommend", file(kRequests)}};
}

TEST_CASE("every command that prices a KV cache warns once where the engine refuses it on the GPU", "[main]") {
  const Scenarios scenarios(20);  // head_dim 64
  for (Arguments way : ways(scenarios, "z100", "kv_cache: {dtype: f32}\n")) {
    if (way.front() == "recommend") way.insert(way.end(), {"--kv-cache-dtype", "f32"});
    CAPTURE(way.front(), read(way.at(1)));
    const std::vector<std::string> found = refusals(run_for_json(way));
    REQUIRE(found.size() == 1);
    CHECK_THAT(found.front(), ContainsSubstring(kNoF32));
    CHECK_THAT(run_dculab(way).out, ContainsSubstring("warning: " + std::string(kRefuses) + kNoF32));
  }
}

TEST_CASE("drafts and groups are studied with the same warning") {
  const Scenarios scenarios(20);
  const std::string head = "kv_cache: {dtype: f32}\n";
  const Json drafts = run_for_json(
      {"study", scenarios.file("z100", head + kRefusedStep +
                                           "engine: {speculative_config: {method: ngram, num_speculative_tokens: 3, "
                                           "acceptance: 0.8}}\nsweep: {workload.batch: [1, 2]}\n")});
  CHECK(refusals(drafts).size() == 1);
  const Json groups = run_for_json({"study", "group_size", "--set", "kv_cache.dtype=f32", "machines=[z100]"});
  CHECK(refusals(groups).size() == 1);
}

TEST_CASE("a KV cache that the engine has, or that another program's kernels serve, has no such warning") {
  const Scenarios scenarios(20);
  for (const Arguments& way : ways(scenarios, "z100", "kv_cache: {dtype: f16}\n")) {
    CAPTURE(way.front(), read(way.at(1)));
    CHECK(refusals(run_for_json(way)).empty());
  }
  for (const Arguments& way : ways(scenarios, "x86-server", "kv_cache: {dtype: f32}\n")) {
    CAPTURE(way.front(), read(way.at(1)));
    if (way.front() != "recommend") CHECK(refusals(run_for_json(way)).empty());
  }
  CHECK(refusals(run_for_json({"simulate", scenarios.file("z100", "kv_cache: {dtype: int8}\n" + kRequests), "--stack",
                               "llama.cpp"}))
            .empty());
}

TEST_CASE("policies, the size of heads and sets of heads are warned of where they are what is refused") {
  const Scenarios of_64(20), of_80(16);
  const auto only = [](const std::string& scenario, const std::string& words) {
    INFO(read(scenario));
    const std::vector<std::string> found = refusals(run_for_json({"simulate", scenario}));
    REQUIRE(found.size() == 1);
    CHECK_THAT(found.front(), ContainsSubstring(words));
  };
  only(of_64.file("z100", "kv_cache: {dtype: int8, retention: critical_blocks, budget: 0.25}\n" + kRequests),
       "kv_retention critical_blocks takes no kv_cache_dtype int8 on a GPU");
  only(of_64.file("z100", "kv_cache: {dtype: kvquant4}\n" + kRequests), "kvquant4 is not supported on the GPU");
  for (const char* machine : {"z100", "x86-server"})
    only(of_80.file(machine, "kv_cache: {dtype: kivi4}\n" + kRequests),
         "kivi4 needs a head_dim that is a multiple of 32, not 80");
  only(of_64.file("z100", "engine: {groups_by_load: {num_key_value_heads: 5}}\n" + kRequests),
       "two sets of KV heads are served with --device cpu");
  only(of_64.file("z100",
                  "deployment: {tensor_parallel_size: 2}\nkv_cache: {retention: heavy_hitters, window_tokens: 64, "
                  "heavy_hitter_tokens: 64}\n" +
                      kRequests),
       "kv_retention heavy_hitters looks at the scores of all query heads, and processes have some each");
  CHECK(
      refusals(run_for_json({"simulate", of_64.file("x86-server", "kv_cache: {dtype: kivi2}\n" + kRequests)})).empty());
}

}  // namespace
}  // namespace dculab::cli::test
