// The teaching tables' JSON: the keys that others rely on, and the lecture's numbers.
#include <algorithm>
#include <cmath>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const Json& row(const Json& table, const std::string& op) {
  const Json& rows = table.at("rows");
  const auto found = std::find_if(rows.begin(), rows.end(), [&op](const Json& each) { return each.at("op") == op; });
  INFO(op);
  REQUIRE(found != rows.end());
  return *found;
}

double intensity(const Json& table, const std::string& op) { return row(table, op).at("intensity").get<double>(); }

TEST_CASE("the prefill table has the lecture's intensities") {
  // L = 2048, D = 4096, H = 128
  const Json table = run_for_json(
      {"tables", "intensity", "--model", "llama-2-7b", "--phase", "prefill", "--tokens", "2048", "--lecture"});
  CHECK(table.at("schema") == "dculab/tables-intensity/1");
  for (const char* op : {"q_proj", "k_proj", "v_proj", "o_proj"}) CHECK(intensity(table, op) == 1024);  // LD/(2L+D)
  for (const char* op : {"scores", "values"})
    CHECK(intensity(table, op) == Approx(2048.0 * 128 / (2 * 128 + 2048)));  // LH/(2H+L)
  for (const char* op : {"up_proj", "down_proj"})
    CHECK(intensity(table, op) == Approx(4 * 2048.0 * 4096 / (5 * 2048 + 4 * 4096)));  // 4LD/(5L+4D)
  CHECK(row(table, "q_proj").at("flops") == 2.0 * 2048 * 4096 * 4096);
  CHECK(row(table, "q_proj").at("bytes") == 2.0 * (2048 * 4096 * 2 + 4096 * 4096));
  CHECK(table.at("rows").size() == 13);
}

TEST_CASE("the decode table has the lecture's intensities", "[main]") {
  const Json table = run_for_json(
      {"tables", "intensity", "--model", "llama-2-7b", "--phase", "decode", "--tokens", "2048", "--lecture"});
  for (const char* op : {"q_proj", "k_proj", "v_proj", "o_proj"})
    CHECK(intensity(table, op) == Approx(4096.0 / 4098));  // D/(2+D)
  for (const char* op : {"up_proj", "down_proj"}) CHECK(intensity(table, op) == Approx(4 * 4096.0 / (5 + 4 * 4096)));
  const double heads_and_length = 2048.0 * 128;
  for (const char* op : {"scores", "values"})  // (H+LH)/(2H+L+LH+1)
    CHECK(intensity(table, op) == Approx((128 + heads_and_length) / (2 * 128 + 2048 + heads_and_length + 1)));
  CHECK(table.at("rows").size() == 15);
}

TEST_CASE("a model of today shows its own ops") {
  const Json table = run_for_json({"tables", "intensity", "--model", "llama-3-8b", "--batch", "2", "--dtype", "bf16"});
  CHECK(row(table, "gate_proj").at("flops") == row(table, "up_proj").at("flops"));
  CHECK(row(table, "k_proj").at("flops").get<double>() * 4 == row(table, "q_proj").at("flops"));
  CHECK(table.at("batch") == 2);
  CHECK(table.at("dtype") == "bf16");
}

TEST_CASE("KVQuant's claim: LLaMA-7B with 1 M tokens on one A100-80GB, and 10 M on eight") {
  const auto kv_bytes = [](const char* dtype, const char* tokens) {
    return run_for_json({"tables", "footprint", "--model", "llama-2-7b", "--tokens", tokens, "--batch", "1",
                         "--kv-dtype", dtype})
        .at("kv_bytes")
        .get<double>();
  };
  constexpr double kGpu = 80.0 * (1 << 30), kCodes = 2 * 32 * 4096 * 2 / 8.0, kWeights = 13.5e9;
  // 41 of 4096 values of K and of V in 4 bytes, and a scale of V.
  CHECK(kv_bytes("kvquant2", "1") == kCodes + 32 * (2 * 41 * 4 + 4));
  // The cache alone fits one; weights of 4 bits fit beside it, those of F16 do not.
  CHECK(kv_bytes("kvquant2", "1000000") < kGpu - kWeights / 4);
  CHECK(kv_bytes("kvquant2", "1000000") > kGpu - kWeights);
  // Of 10 M tokens the codes alone fit eight: with outliers it is 8.8 GPUs.
  CHECK(1e7 * kCodes < 8 * kGpu);
  CHECK(kv_bytes("kvquant2", "10000000") > 8 * kGpu);
}

TEST_CASE("a format of K and V is not told of latents") {
  for (const char* dtype : {"kvquant2", "kivi4"}) {
    const Arguments llama{"tables", "footprint", "--model", "llama-2-7b", "--kv-dtype", dtype};
    const Json footprint = run_for_json(llama);
    for (const Json& row : footprint.at("rows")) CHECK(row.at("attention") == "gqa");
    CHECK_THAT(run_dculab(llama).out, ContainsSubstring("No row of MLA: " + std::string(dtype)));
    check_refused({"tables", "footprint", "--model", "deepseek-v2-lite", "--kv-dtype", dtype},
                  {"--kv-dtype", dtype, "this model caches latents"});
  }
}

TEST_CASE("the footprint of Llama-2-7B, counted by hand", "[main]") {
  const Json table = run_for_json({"tables", "footprint", "--model", "llama-2-7b", "--tokens", "2048", "--batch", "1"});
  CHECK(table.at("kv_bytes") == 1073741824);  // 2 x 32 layers x 32 heads x 128 x 2 bytes x 2048 tokens
  CHECK(table.at("kv_bytes_per_token") == 524288);
  const double layer = 4 * 4096.0 * 4096 + 3 * 4096.0 * 11008;
  CHECK(table.at("weight_bytes") == 2 * (32 * layer + 2 * 32000 * 4096.0 + 65 * 4096.0));
  CHECK(table.at("rows").size() == 7);  // KV heads that divide 32, and latents

  const Json grouped = run_for_json({"tables", "footprint", "--model", "llama-2-7b", "--tokens", "2048", "--batch", "4",
                                     "--kv-heads", "8", "--kv-dtype", "fp8_e4m3"});
  CHECK(grouped.at("kv_bytes") == 1073741824 / 2);  // 4 sequences, a quarter of the heads, half the bytes
}

TEST_CASE("predict's sequences fit in the room of a footprint") {
  const Json table =
      run_for_json({"tables", "footprint", "--model", "llama-3-8b", "--tokens", "2048", "--machine", "z100"});
  const Json step = run_for_json({"predict", "--model", "llama-3-8b", "--machine", "z100", "--context", "2048"});
  const double fit = table.at("rooms")[0].at("kv_bytes").get<double>() / table.at("kv_bytes").get<double>();
  CHECK(std::floor(fit) == step.at("max_sequences"));
}

TEST_CASE("the lecture's crossover lies at 6D, and is a whole number of tokens to people") {
  const Arguments footprint{"tables", "footprint", "--model", "llama-2-7b", "--lecture"};
  CHECK(run_for_json(footprint).at("crossover_tokens") == 6 * 4096);
  CHECK_THAT(run_dculab(footprint).out, ContainsSubstring(" 24576 tokens\n"));
}

TEST_CASE("the two forms of latents") {
  const Json table =
      run_for_json({"tables", "latents", "--model", "deepseek-v2-lite", "--machine", "z100", "--context", "4096"});
  REQUIRE(table.at("rows").size() == 13);  // 1, 2, 4, ..., 4096 new tokens
  CHECK(table.at("rows").front().at("cheaper") == "absorbed");
  CHECK(table.at("rows").back().at("cheaper") == "expanded");
  CHECK_FALSE(table.contains("warnings"));  // our own kernels run both
  const Finished llama = run_dculab({"tables", "latents", "--model", "llama-3-8b", "--machine", "z100"});
  CHECK(llama.exit_code == 2);
  CHECK_THAT(llama.err, ContainsSubstring("has no latent attention"));
}

TEST_CASE("CSV has the exact figures, one line per row") {
  const Finished done = run_dculab({"tables", "footprint", "--model", "llama-2-7b", "--format", "csv"});
  CHECK(done.exit_code == 0);
  CHECK(std::count(done.out.begin(), done.out.end(), '\n') == 8);
  CHECK_THAT(done.out, ContainsSubstring("\ngqa,32,13476831232.0,1073741824.0,524288.0,"));
}

}  // namespace
}  // namespace dculab::cli::test
