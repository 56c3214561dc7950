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
