// What documents say of the shipped model's accuracy, on the first windows of its held-out text.
#include <algorithm>
#include <map>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kModel = std::string(DCULAB_SOURCE_DIR) + "/scenarios/models/dculab-tiny";

// Some 6,000 tokens.
std::string held_out(const Folder& folder) {
  return folder.write("held-out.txt", read(kModel + "/eval/held-out.txt").substr(0, 24'000));
}

// The perplexity of each row, in their order.
std::vector<double> perplexities(const Json& evaluation) {
  std::vector<double> result;
  for (const Json& row : evaluation.at("rows")) result.push_back(row.at("text").at("perplexity"));
  return result;
}

}  // namespace

TEST_CASE("GPTQ's perplexity is below that of rounding to nearest, at 4 and at 3 bits", "[once]") {
  const Folder folder;
  std::string models;
  for (const std::string variant : {"gptq4", "rtn4", "gptq3", "rtn3"}) {
    const std::string method = variant.substr(0, variant.size() - 1), output = folder.path(variant);
    CHECK(run_for_json({"quantize", "--model", kModel, "--method", method, "--bits", variant.substr(method.size()),
                        "--group-size", "128", "--calibration", kModel + "/calibration.txt", "--calibration-tokens",
                        "2048", "--output", output})["method"] == method);
    models += output + ",";
  }
  const auto found = perplexities(run_for_json({"evaluate", "--model", models + kModel, "--text", held_out(folder)}));
  REQUIRE(found.size() == 5);
  CHECK(found[0] < found[1]);
  CHECK(found[2] < found[3]);
  CHECK(found[4] < std::min(found[0], found[2]));  // unquantized
}

TEST_CASE("an FP8 cache costs less than 1 % of perplexity, KIVI with 4 bits less than 2 %", "[once]") {
  const Folder folder;
  const auto found = perplexities(run_for_json({"evaluate", "--model", kModel, "--text", held_out(folder), "--stream",
                                                "--kv-cache-dtype", "f16,fp8_e4m3,kivi4"}));
  REQUIRE(found.size() == 3);
  CHECK(found[1] < 1.01 * found[0]);
  CHECK(found[2] < 1.02 * found[0]);
}

TEST_CASE("beyond the trained length sinks and windows hold, where keeping everything does not", "[once]") {
  const Folder folder;
  const Json found = run_for_json({"evaluate", "--model", kModel, "--text", held_out(folder), "--stream", "--window",
                                   "2048", "--max-position-embeddings", "4096", "--kv-retention", "all,sinks,window",
                                   "--sink-tokens", "4", "--window-tokens", "256"});
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

}  // namespace dculab::cli::test
