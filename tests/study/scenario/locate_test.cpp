// Where shipped files are looked for, and what is said of a folder that cannot be read.
#include "study/scenario/locate.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// DCULAB_DATA, as long as this lives.
class WithDataFolder {
 public:
  explicit WithDataFolder(const std::filesystem::path& folder) {
    if (const char* before = std::getenv("DCULAB_DATA")) before_ = before;
    ::setenv("DCULAB_DATA", folder.c_str(), 1);
  }
  ~WithDataFolder() {
    if (before_)
      ::setenv("DCULAB_DATA", before_->c_str(), 1);
    else
      ::unsetenv("DCULAB_DATA");
  }
  WithDataFolder(const WithDataFolder&) = delete;
  WithDataFolder& operator=(const WithDataFolder&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST_CASE("a folder of stacks that cannot be read is refused; one that is not there is not") {
  const files::test::TemporaryFolder data;
  const WithDataFolder environment(data.path());
  CHECK_FALSE(stack_files().empty());
  std::filesystem::create_directory_symlink("stacks", data.path() / "stacks");  // to itself: root cannot read it either
  CHECK_THROWS_WITH(stack_files(), ContainsSubstring("Too many levels of symbolic links"));
}

TEST_CASE("a shipped model is found by its name on the Hub, too") {
  const std::filesystem::path ours = find_model("llama-3-8b");
  for (const char* name : {"Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B", "META-LLAMA-3-8b"})
    CHECK(std::filesystem::equivalent(find_model(name), ours));
  CHECK(find_model("Qwen/Qwen3-32B").filename() == "qwen3-32b");
  CHECK_FALSE(try_find_model("Meta-Llama-3"));
  CHECK_FALSE(try_find_model("somebody/llama-3-8b"));
  CHECK_THROWS_WITH(find_model("Meta-Llama-3-9B"), ContainsSubstring("no model 'Meta-Llama-3-9B'"));
}

TEST_CASE("a tuned model is found by the name of its architecture") {
  CHECK(find_model("meta-llama/Llama-3.1-8B-Instruct").filename() == "llama-3.1-8b");
  CHECK(find_model("Llama-2-70b-chat-hf").filename() == "llama-2-70b");
  CHECK(find_model("deepseek-ai/DeepSeek-V2-Lite-Chat").filename() == "deepseek-v2-lite");
  CHECK(find_model("google/gemma-2-9b-it").filename() == "gemma-2-9b-it");
  CHECK_FALSE(try_find_model("somebody/Llama-3.1-8B-Instruct"));
  CHECK_FALSE(try_find_model("Qwen/Qwen3-30B-A3B-Instruct-2507"));  // whose longest context differs
  CHECK(checkpoint_of("meta-llama/Llama-3.1-8B-Instruct") == "meta-llama/Llama-3.1-8B-Instruct");
  CHECK(checkpoint_of("Llama-3.1-8B-Instruct") == "meta-llama/Llama-3.1-8B-Instruct");
  CHECK(checkpoint_of("qwen3-8b") == "Qwen/Qwen3-8B");
}

TEST_CASE("a name on the Hub of other weights says which to give, and an unknown one its family") {
  const auto refused = [](const char* name, const char* hint) {
    CHECK_THROWS_WITH(find_model(name), ContainsSubstring(hint));
  };
  refused("Qwen/Qwen3-8B-AWQ", "; write --model qwen3-8b --weights awq");
  refused("Qwen/Qwen3-8B-FP8", "; write --model qwen3-8b --weights fp8");
  refused("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "; write --model qwen2.5-7b --weights gptq-int4");
  refused("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "; write --model llama-3.1-8b --weights awq");
  refused("meta-llama/Llama-3.2-8B-Instruct", "did you mean 'llama-3.1-8b', 'llama-3.2-1b' or 'llama-3.2-3b'?");
  refused("Qwen/Qwen3-4B-Instruct-2507", "did you mean 'qwen3-4b'?");
  refused("google/gemma-2-9b", "did you mean 'gemma-2-9b-it'?");
  refused("microsoft/Phi-3.5-mini-instruct", "did you mean 'phi-4-mini-instruct'?");
  CHECK(find_model("Qwen/Qwen3-32B-FP8").filename() == "qwen3-32b-fp8");
}

TEST_CASE("names of what is shipped are found in any case, and slips are understood") {
  CHECK(std::filesystem::equivalent(find_machine("K100-AI"), find_machine("k100-ai")));
  CHECK(std::filesystem::equivalent(find_model("Llama-3-8B"), find_model("llama-3-8b")));
  CHECK(std::filesystem::equivalent(find_scenario("Serving/LLaMA3_on_z100"), find_scenario("serving/llama3_on_z100")));
  CHECK(try_find_stack("vLLM-DTK") == try_find_stack("vllm-dtk"));
  CHECK_THROWS_WITH(find_machine("k100ai"), ContainsSubstring("did you mean 'k100-ai'?"));
  CHECK_THROWS_WITH(find_scenario("llama3_on_z100"), ContainsSubstring("llama3_on_dcu"));
  CHECK_THROWS_WITH(find_model("nothing-alike"), ContainsSubstring("`dculab list models` has the "));
}

TEST_CASE("a model's config.json stands for its folder") {
  const files::test::TemporaryFolder folder;
  folder.write("config.json", "{}");
  CHECK(find_model(folder.path("config.json")) == folder.path());
  CHECK_THROWS_WITH(find_model(folder.write("model.json", "{}")), ContainsSubstring("model.json: is no model"));
  CHECK_THROWS_WITH(find_machine(folder.path().string()), ContainsSubstring("is no file"));
}

TEST_CASE("scenarios in folders have names, and what lies beside them has none") {
  const std::vector<std::string> names = scenario_names();
  for (const char* const name : {"quickstart", "serving/llama3_on_z100", "search/serving_settings"})
    CHECK(std::ranges::count(names, name) == 1);
  CHECK(std::ranges::none_of(names, [](const std::string& name) { return name.starts_with("papers/stacks/"); }));
}

}  // namespace
}  // namespace dculab::study
