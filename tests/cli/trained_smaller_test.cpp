// What documents say of the models that scripts/model/qat.sh and distill.sh made, on the first windows of its teacher's
// held-out text.
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const std::string kModels = std::string(DCULAB_SOURCE_DIR) + "/scenarios/models/";
const std::string kTeacher = kModels + "dculab-tiny";

// Some 6,000 tokens.
std::string first_held_out(const Folder& folder) {
  return folder.write("held-out.txt", read(kTeacher + "/eval/held-out.txt").substr(0, 24'000));
}

// The rows of an evaluation without a measurement of speed.
Json judged(Arguments arguments) {
  arguments.insert(arguments.begin(), "evaluate");
  arguments.insert(arguments.end(), {"--decode-steps", "0"});
  return run_for_json(std::move(arguments)).at("rows");
}

// One row: as the checkpoints were trained to be run.
double trained_way(const std::string& model, const std::string& text) {
  const Json rows = judged({"--model", model, "--text", text, "--activations", "int8", "--kv-cache-dtype", "int8"});
  REQUIRE(rows.size() == 1);
  return rows[0].at("text").at("perplexity");
}

}  // namespace

// The formulas of training are those of fake_quantization.py; perplexities: scripts/model/check_qat.py on the same
// text, in torch's F32. A code on the edge between two falls either way, which moved the loss by less than 1e-4.
TEST_CASE("the engine computes with QAT's checkpoint what training computed", "[once]") {
  const Folder folder;
  CHECK_THAT(trained_way(kModels + "dculab-tiny-qat2", first_held_out(folder)), WithinRel(2.55764, 1e-3));
}

TEST_CASE("QAT at 2 bits has a lower perplexity than GPTQ at 2 bits", "[.slow][once]") {
  const Folder folder;
  const std::string text = first_held_out(folder), gptq = folder.path("gptq2");
  CHECK(run_for_json({"quantize", "--model", kTeacher, "--method", "gptq", "--bits", "2", "--group-size", "32",
                      "--calibration", kTeacher + "/calibration.txt", "--output", gptq})["method"] == "gptq");
  CHECK(trained_way(kModels + "dculab-tiny-qat2", text) < trained_way(gptq, text));
}

TEST_CASE("the distilled student is nearer to its teacher than the draft model that it began as", "[.slow][once]") {
  const Folder folder;
  const Json rows = judged({"--model", kModels + "dculab-tiny-student," + kModels + "dculab-tiny-draft", "--reference",
                            kTeacher, "--text", first_held_out(folder)});
  REQUIRE(rows.size() == 2);
  const auto kl = [&rows](std::size_t row) { return rows[row].at("text").at("mean_kl").get<double>(); };
  CHECK(kl(0) < 0.9 * kl(1));
}

}  // namespace dculab::cli::test
