// What was assumed of a model, and what of it is not counted: told once by every command that prices, in text and JSON.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/program.hpp"
#include "tests/cli/search_scenarios.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kUnknown =
    R"({"model_type": "foo", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 4,
        "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096,
        "torch_dtype": "float16"})";
constexpr const char* kNote = "model_type 'foo' is not known: predicted as a dense decoder like Llama";

// A folder with the model, and its path.
class UnknownModel {
 public:
  explicit UnknownModel(const char* config = kUnknown) : path_(folder_.path("foo")) {
    std::filesystem::create_directory(path_);
    folder_.write("foo/config.json", config);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string scenario(const std::string& more) const {
    return folder_.write("scenario.yaml", "schema: dculab/scenario/1\nquestion: How long?\nmodel: " + path_ +
                                              "\nmachine: z100\n" + more);
  }

 private:
  Folder folder_;
  std::string path_;
};

constexpr const char* kStepWorkload = "workload: {phase: decode, batch: 4, context_tokens: 500}\n";

[[nodiscard]] std::size_t times_told(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

void check_told_once(const Arguments& arguments) {
  INFO(arguments[0] << " " << arguments[1]);
  const Finished done = run_dculab(arguments);
  CHECK(done.exit_code == 0);
  CHECK(times_told(done.out, kNote) == 1);
  CHECK_THAT(done.out, ContainsSubstring(std::string("warning: ") + kNote));
  const Json json = run_for_json(arguments);
  const auto is_note = [](const Json& each) { return each.get<std::string>().starts_with(kNote); };
  REQUIRE(json.contains("warnings"));
  CHECK(std::ranges::count_if(json.at("warnings"), is_note) == 1);
}

TEST_CASE("every command that prices tells once what was assumed of a model that is not known", "[main]") {
  const UnknownModel model;
  check_told_once({"predict", "--model", model.path(), "--machine", "z100"});
  check_told_once({"tables", "footprint", "--model", model.path(), "--tokens", "100"});
  check_told_once({"tables", "intensity", "--model", model.path()});
  check_told_once({"recommend", "--model", model.path(), "--machine", "z100", "--concurrency", "4"});
  check_told_once({"study", model.scenario(std::string(kStepWorkload) + "sweep: {kv_cache.block_size: [16, 32]}\n")});
  check_told_once({"study", model.scenario(std::string(kStepWorkload) + "sweep: {kv_cache.block_size: [16, 32]}\n" +
                                           "objective: {maximize: tokens_per_second}\n")});
  check_told_once({"simulate", model.scenario(kRequests)});
}

TEST_CASE("of several models those are told that something was assumed of") {
  const UnknownModel model;
  const Finished done = run_dculab(
      {"study", model.scenario(std::string(kStepWorkload) + "sweep: {model: [llama-2-7b, " + model.path() + "]}\n")});
  CHECK(done.exit_code == 0);
  CHECK(times_told(done.out, std::string("warning: foo: ") + kNote) == 1);
}

TEST_CASE("a model that is known has no note, and one that is predicted alone is not run") {
  CHECK_FALSE(run_for_json({"tables", "footprint", "--model", "llama-2-7b", "--tokens", "100"}).contains("warnings"));
  const UnknownModel model;
  check_refused({"bench", "--model", model.path(), "--random-weights", "f16", "--repeats", "1"},
                {"predicted, not run"});
}

TEST_CASE("weights that ModelOpt describes beside config.json are predicted as they are stored, or with a warning") {
  const UnknownModel model(R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 3072,
    "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 32000, "torch_dtype": "bfloat16"})");
  const Arguments predict{"predict", "--model", model.path(), "--machine", "h100-sxm"};
  const auto write = [&](const char* format) {
    std::ofstream(model.path() + "/hf_quant_config.json")
        << R"({"quantization": {"quant_algo": ")" << format << R"(", "exclude_modules": ["lm_head"]}})";
  };
  write("FP8");
  CHECK_THAT(run_dculab(predict).out, ContainsSubstring("weights fp8_e4m3"));
  write("NVFP4");
  CHECK_THAT(
      run_dculab(predict).out,
      ContainsSubstring("warning: hf_quant_config.json says that the weights are 'NVFP4', which is not supported"));
}

}  // namespace
}  // namespace dculab::cli::test
