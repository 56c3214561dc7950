#include "config/results_archive.hpp"

#include <fstream>
#include <sstream>

#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "tests/config/small_trace.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tar_text.hpp"

namespace dculab::config {
namespace {

[[nodiscard]] std::string trace_text() { return trace_json_lines(small_trace()); }

[[nodiscard]] std::string machine_text() {
  std::ifstream file(DCULAB_SOURCE_DIR "/hwmodels/mi50.yaml");
  return (std::stringstream() << file.rdbuf()).str();
}

TEST_CASE("an archive's traces and its machine are read, and the rest is left alone") {
  const ResultsArchive archive = read_results_archive(
      "r.tar.gz", tar_member("gpu/README.md", "results of a test") + tar_member("gpu/decode.jsonl", trace_text()) +
                      tar_member("gpu/._decode.jsonl", "what a Mac adds") +
                      tar_member("gpu/others/int4.jsonl", trace_text()) +
                      tar_member("gpu/machine.yaml", machine_text()) + tar_end());
  REQUIRE(archive.traces.size() == 1);
  CHECK(trace_json_lines(archive.traces[0]) == trace_text());
  CHECK(archive.others.size() == 1);
  REQUIRE(archive.machine);
  CHECK(archive.machine->name == "mi50");
}

TEST_CASE("what an archive lacks or has wrong is named with the member") {
  const auto refusal = [](const std::string& text) {
    try {
      (void)read_results_archive("r.tar.gz", text + tar_end());
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(refusal(tar_member("README.md", "")), ContainsSubstring("r.tar.gz: is an archive without traces"));
  CHECK_THAT(refusal(tar_member("a.jsonl", "{}")), ContainsSubstring("r.tar.gz/a.jsonl:1: schema: missing"));
  CHECK_THAT(refusal(tar_member("a\nb.jsonl", "{}")), ContainsSubstring("r.tar.gz/a\\x0ab.jsonl:1: schema: missing"));
  CHECK_THAT(refusal(tar_member("a.jsonl.gz", "\x1f\x8b!")), ContainsSubstring("r.tar.gz/a.jsonl.gz: is a gzip file"));
  CHECK_THAT(refusal(tar_member("machine.yaml", "name: x")), ContainsSubstring("r.tar.gz/machine.yaml:1"));
  CHECK_THAT(refusal(tar_member("a/machine.yaml", machine_text()) + tar_member("b/machine.yaml", machine_text())),
             ContainsSubstring("machine.yaml twice"));
  CHECK_THAT(refusal(tar_member("../a.jsonl", trace_text())), ContainsSubstring("outside of itself"));
}

}  // namespace
}  // namespace dculab::config
