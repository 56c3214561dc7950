// Traces of a real GPU as somebody gets them: on its own machine, and on another.
#include <algorithm>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kH200 = DCULAB_SOURCE_DIR "/tests/data/traces/nvidia-h200/";

TEST_CASE("what traces say of the predictions stands at the end", "[main]") {
  const Arguments asked{"validate", kH200 + "prefill-batch.jsonl.gz", "--machine", kH200 + "machine.yaml"};
  const Json answer = run_for_json(asked);
  CHECK_FALSE(answer.contains("warnings"));
  REQUIRE(answer["conclusion"].size() == 1);
  const std::string sentence = answer["conclusion"][0];
  CHECK_THAT(sentence, ContainsSubstring("84 rows: predicted times are ") &&
                           ContainsSubstring(" off in the median, and ") &&
                           ContainsSubstring(" too long in the mean; 100 % of the measurements are inside their"));
  CHECK_THAT(run_dculab(asked).out, Catch::Matchers::EndsWith("\nIn short\n" + sentence + "\n"));
}

TEST_CASE("traces of another device are warned of, and their refusals told in a line for each limit") {
  const Arguments words{kH200 + "decode.jsonl.gz", "--machine", "h100-sxm"};
  Arguments asked{"validate"};
  asked.insert(asked.end(), words.begin(), words.end());
  const Json answer = run_for_json(asked);
  REQUIRE(answer["warnings"].size() == 1);
  CHECK_THAT(answer["warnings"][0].get<std::string>(),
             ContainsSubstring("recorded on NVIDIA H200, which is not h100-sxm"));
  CHECK(answer["points"].size() + answer["refused"].size() == 378);
  CHECK_THAT(answer["conclusion"][0].get<std::string>(),
             ContainsSubstring(std::to_string(answer["refused"].size()) + " rows refused"));
  const std::string text = run_dculab(asked).out;
  std::ptrdiff_t lines = 0;
  for (std::size_t at = text.find("refused: "); at != std::string::npos; at = text.find("refused: ", at + 1)) ++lines;
  CHECK(lines > 0);
  CHECK(lines < 8);
}

TEST_CASE("a machine fitted to other times is warned of, and where it went is said with what to do next") {
  const Folder folder;
  const std::string file = folder.path("fitted.yaml");
  const Finished done =
      run_dculab({"calibrate", kH200 + "prefill-batch.jsonl.gz", "--machine", "h100-sxm", "--machine-file", file});
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.out,
             ContainsSubstring("warning: recorded on NVIDIA H200, which is not h100-sxm") &&
                 ContainsSubstring("wrote " + file + "; next: dculab predict --model MODEL --machine " + file));
}

TEST_CASE("a device on which no step is possible is refused, and the one to give named") {
  const std::string trace = kH200 + "prefill.jsonl.gz";
  const std::string advice = "they were recorded on NVIDIA H200, which is not z100: give --machine h200, or the file";
  const Finished fit = run_dculab({"calibrate", trace, "--machine", "z100"});
  CHECK(fit.exit_code == 2);
  CHECK(fit.out.empty());
  CHECK_THAT(fit.err, ContainsSubstring("only 0 steps of these traces can be used, 8 are needed; " + advice));
  check_refused({"validate", trace, "--machine", "z100"}, {trace, "all 126 steps are faster than z100 can be", advice});
  const Folder folder;
  const std::string none = folder.write(
      "none.jsonl",
      R"({"schema":"dculab/trace/2","machine":"m","device":"d","build":"b","threads":0,"timing":"t","created":"c"})");
  check_refused({"validate", none, "--machine", "z100"}, {none, "has no steps"});
}

TEST_CASE("no machine is made of the times of a host that plays a GPU", "[main]") {
  const Folder folder;
  const std::string trace = folder.path("trace.jsonl"), file = folder.path("fitted.yaml");
  REQUIRE(run_dculab({"bench", "--model", "dculab-tiny", "--device", "host-gpu", "--phase", "decode", "--context", "4",
                      "--repeats", "1", "--warm-up", "0", "--trace", trace})
              .exit_code == 0);
  check_refused({"calibrate", trace, "--machine", "mi50", "--machine-file", file},
                {"--machine-file", "recorded by a host that plays a GPU (host build, ", "record on hip:N or cuda:N"});
  CHECK(folder.entries() == std::vector<std::string>{"trace.jsonl"});
}

}  // namespace
}  // namespace dculab::cli::test
