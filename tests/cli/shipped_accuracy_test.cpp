// What documents say of the shipped model's accuracy, on the first windows of its held-out text.
#include <algorithm>
#include <map>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

namespace dculab::cli::test {
namespace {

// Some 6,000 tokens.
std::string held_out(const Folder& folder) {
  return folder.write("held-out.txt", read(kShippedModel + "/eval/held-out.txt").substr(0, 24'000));
}

std::string first_of_recall(const Folder& folder, int questions) {
  const std::string text = read(kShippedModel + "/eval/recall.jsonl");
  std::size_t end = 0;
  for (int question = 0; question < questions; ++question) end = text.find('\n', end) + 1;
  return folder.write("recall.jsonl", text.substr(0, end));
}

// The perplexity of each row, in their order.
std::vector<double> perplexities(const Json& evaluation) {
  std::vector<double> result;
  for (const Json& row : evaluation.at("rows")) result.push_back(row.at("text").at("perplexity"));
  return result;
}

}  // namespace

TEST_CASE("GPTQ's perplexity is below that of rounding to nearest, at 4 and at 3 bits", "[.slow][once]") {
  const Folder folder;
  std::string models;
  for (const std::string variant : {"gptq4", "rtn4", "gptq3", "rtn3"}) {
    const std::string method = variant.substr(0, variant.size() - 1), output = folder.path(variant);
    CHECK(
        run_for_json({"quantize", "--model", kShippedModel, "--method", method, "--bits", variant.substr(method.size()),
                      "--group-size", "128", "--calibration", kShippedModel + "/calibration.txt",
                      "--calibration-tokens", "2048", "--output", output})["method"] == method);
    models += output + ",";
  }
  const auto found =
      perplexities(run_for_json({"evaluate", "--model", models + kShippedModel, "--text", held_out(folder)}));
  REQUIRE(found.size() == 5);
  CHECK(found[0] < found[1]);
  CHECK(found[2] < found[3]);
  CHECK(found[4] < std::min(found[0], found[2]));  // unquantized
}

// docs/reference/kv-cache.md#accuracy has perplexities and KL on all of the text, of kvquant4 on its beginning. Here KL
// may be twice as large, perplexity as much higher as documents say in words.
TEST_CASE("what formats of the KV cache cost is what documents say", "[.slow][once]") {
  struct Cost {
    std::string format;
    double perplexity, kl;
  };
  const std::vector<Cost> most{{"int8", 1.001, 2 * 0.00003},
                               {"fp8_e4m3", 1.01, 2 * 0.0013},
                               {"kivi4", 1.02, 2 * 0.0003},
                               {"kivi2", 1.02, 2 * 0.0084},
                               {"kvquant4", 1.01, 2 * 0.0056}};
  const Folder folder;
  const Json rows =
      run_for_json({"evaluate", "--model", kShippedModel, "--reference", kShippedModel, "--text", held_out(folder),
                    "--stream", "--decode-steps", "0", "--kv-cache-dtype", "f16,int8,fp8_e4m3,kivi4,kivi2,kvquant4"})
          .at("rows");
  REQUIRE(rows.size() == 1 + most.size());
  const double exact = rows[0].at("text").at("perplexity");
  for (std::size_t i = 0; i < most.size(); ++i) {
    INFO(most[i].format);
    const Json& text = rows[i + 1].at("text");
    CHECK(rows[i + 1].at("kv_cache_dtype") == most[i].format);
    CHECK(text.at("perplexity") < most[i].perplexity * exact);
    CHECK(text.at("mean_kl") < most[i].kl);
    CHECK(text.at("mean_kl") > 1e-6);  // something was rounded
  }
}

TEST_CASE("beyond the trained length sinks and windows hold, where keeping everything does not", "[once]") {
  const Folder folder;
  const Json found = run_for_json({"evaluate", "--model", kShippedModel, "--text", held_out(folder), "--stream",
                                   "--window", "2048", "--max-position-embeddings", "4096", "--kv-retention",
                                   "all,sinks,window", "--sink-tokens", "4", "--window-tokens", "256"});
  std::map<int, std::vector<double>> losses;  // by the tokens before, of each row
  for (const Json& row : found.at("rows"))
    for (const Json& stretch : row.at("text").at("by_position"))
      if (!stretch.at("loss").is_null()) losses[stretch.at("begin")].push_back(stretch.at("loss"));
  const std::vector<double>& beyond = losses.at(1024);
  REQUIRE(beyond.size() == 3);
  CHECK(beyond[1] < beyond[0]);
  CHECK(beyond[2] < beyond[0]);
  CHECK(beyond[1] < losses.at(512)[1] + 0.1);
}

// A quarter of the bytes of 964 tokens, the longest of these texts: 12 of 61 blocks, and the bounds of all.
TEST_CASE("critical blocks recall what a window of as many bytes loses", "[once]") {
  const Folder folder;
  const Json rows = run_for_json({"evaluate", "--model", kShippedModel, "--choices", first_of_recall(folder, 40),
                                  "--stream", "--kv-retention", "all,critical-blocks,window", "--kv-budget", "0.1875",
                                  "--block-size", "16", "--decode-context", "964", "--decode-steps", "0"})
                        .at("rows");
  REQUIRE(rows.size() == 3);
  std::vector<double> right, loaded;
  for (const Json& row : rows) {
    right.push_back(row.at("choices").at(0).at("accuracy"));
    loaded.push_back(row.at("kv_bytes_loaded"));
  }
  CHECK(loaded[1] < 0.26 * loaded[0]);
  CHECK(loaded[1] <= loaded[2]);
  CHECK(right[1] >= right[0] - 0.02);
  CHECK(right[2] <= right[0] - 0.2);
}

}  // namespace dculab::cli::test
