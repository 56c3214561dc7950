// Where shipped files are looked for, and what is said of a folder that cannot be read.
#include "study/scenario/locate.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

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

}  // namespace
}  // namespace dculab::study
