// What a user finds without reading anything else.
#include "core/kv/table.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

TEST_CASE("every command explains itself") {
  const std::vector<Arguments> commands{{"study"},
                                        {"predict"},
                                        {"tables"},
                                        {"tables", "intensity"},
                                        {"tables", "footprint"},
                                        {"run"},
                                        {"serve"},
                                        {"bench"},
                                        {"evaluate"},
                                        {"probe"},
                                        {"import"},
                                        {"quantize"},
                                        {"calibrate"},
                                        {"validate"},
                                        {"diagnose"},
                                        {"show"},
                                        {"schema"},
                                        {"regroup"}};
  const std::string overview = run_dculab({"--help"}).out;
  for (Arguments command : commands) {
    if (command.size() == 1) CHECK_THAT(overview, ContainsSubstring("\n  " + command[0] + " "));
    INFO(command.back());
    const bool prints_result = command != Arguments{"tables"} && command != Arguments{"serve"};
    command.emplace_back("--help");
    const Finished done = run_dculab(command);
    CHECK(done.exit_code == 0);
    CHECK(done.err.empty());
    CHECK_THAT(done.out, ContainsSubstring("Usage: "));
    if (prints_result) {
      CHECK_THAT(done.out, ContainsSubstring("--format table|json|csv"));
      const bool writes_folder = command[0] == "quantize" || command[0] == "regroup";
      CHECK_THAT(done.out, ContainsSubstring(writes_folder ? "--output FOLDER" : "--output FILE"));
    }
  }
}

TEST_CASE("help names every format of a KV cache") {
  for (const char* const command : {"run", "bench", "predict"}) {
    const std::string help = run_dculab({command, "--help"}).out;
    for (const KvFormat& format : kKvFormats) {
      INFO(command << " " << name(format.dtype));
      CHECK_THAT(help, ContainsSubstring(std::string(name(format.dtype))));
    }
  }
}

TEST_CASE("the version is a line") {
  const Finished done = run_dculab({"--version"});
  CHECK(done.exit_code == 0);
  CHECK(done.out.starts_with("dculab "));
}

}  // namespace
}  // namespace dculab::cli::test
