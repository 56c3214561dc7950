// Files that somebody sends: what is refused, and which machine an archive brings along.
#include "study/calibrate/measured_traces.hpp"

#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "tests/config/small_trace.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tar_text.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::string trace_text() { return config::trace_json_lines(config::small_trace()); }

TEST_CASE("a file that is neither an archive nor a trace is named, with a machine and without one") {
  const files::test::TemporaryFolder folder;
  const std::string random = "\x93\x01\x7f{ random";
  for (const std::string& text : {std::string(), std::string(" \n"), random, tar_end(), std::string("kind: gpu\n")}) {
    const std::string file = folder.write("r.tar.gz", text);
    const auto refused = ContainsSubstring("r.tar.gz: is no tar archive and no trace; give what scripts/gpu-validate");
    CHECK_THROWS_WITH(machine_of_traces("", {file}), refused);
    CHECK_THROWS_WITH(read_traces({file}, TraceUse::compare), refused);
  }
  for (const std::string& text : {trace_text(), "\xEF\xBB\xBF" + trace_text()})
    CHECK(read_traces({folder.write("t.jsonl", text)}, TraceUse::fit).front().trace.steps.size() == 2);
}

TEST_CASE("an archive brings its machine along, and says so if it has none") {
  const files::test::TemporaryFolder folder;
  const std::string traces = tar_member("a/t.jsonl", trace_text());
  const std::string machine = files::read_text(DCULAB_SOURCE_DIR "/hwmodels/mi50.yaml", files::kLargestText);
  const std::string whole = folder.write("whole.tar", traces + tar_member("a/machine.yaml", machine) + tar_end());
  CHECK(machine_of_traces("", {whole}).name == "mi50");
  const std::string without = folder.write("without.tar", traces + tar_end());
  CHECK_THROWS_WITH(machine_of_traces("", {without}),
                    ContainsSubstring("without.tar: has no machine.yaml; give --machine M"));
  for (const std::vector<std::string>& several : {std::vector{whole, whole}, {folder.write("t.jsonl", trace_text())}})
    CHECK_THROWS_WITH(machine_of_traces("", several), ContainsSubstring("--machine: name the machine"));
}

}  // namespace
}  // namespace dculab::study
