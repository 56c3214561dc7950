// `dculab page`: the page that was built, wherever it is, or one line that says how to get it.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("dculab page copies the page of the data folder", "[main]") {
  const Folder folder;
  const std::string data = folder.path("data");
  fs::create_directories(data);
  const std::string page = "<!doctype html><title>of this test</title>";
  (void)folder.write("data/lab.html", page);
  const std::string copy = folder.path("copy.html");
  const Finished done = run_in_shell("DCULAB_DATA='" + data + "' \"$@\"", {"page", "--output", copy});
  REQUIRE(done.exit_code == 0);
  REQUIRE(read(copy) == page);
  CHECK_THAT(done.out, ContainsSubstring("wrote " + copy + "; open it in a browser"));
  const Finished streamed = run_in_shell("DCULAB_DATA='" + data + "' \"$@\"", {"page", "--output", "-"});
  CHECK(streamed.out == page);
}

TEST_CASE("dculab page takes what the preset web built, or says how to build it") {
  const Folder folder;
  const std::string copy = folder.path("lab.html"), built = DCULAB_SOURCE_DIR "/build/web/lab.html";
  const Finished done = run_in_shell("\"$@\"", {"page", "--output", copy});
  if (fs::exists(built)) {
    REQUIRE(done.exit_code == 0);
    REQUIRE(read(copy) == read(built));
  } else {
    check_refusal(done, {"no page", "cmake --workflow --preset web", "release"});
    REQUIRE(folder.entries().empty());
  }
}

}  // namespace
}  // namespace dculab::cli::test
