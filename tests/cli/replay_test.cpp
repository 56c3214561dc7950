// `dculab replay`: recorded kernels beside the closed form.
#include <algorithm>
#include <sstream>

#include "tests/cli/generous_cpu.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

Arguments replay(const Arguments& more) {
  Arguments arguments{"replay", "--model", "dculab-tiny", "--machine", "z100", "--batch", "2", "--context", "100"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Columns of a terminal: one for each character, whatever its bytes in UTF-8.
std::size_t width(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

TEST_CASE("replay in JSON: what each level is asked for, replayed and by the closed form", "[main]") {
  const Json result = run_for_json(replay({}));
  CHECK(result.at("schema") == "dculab/replay/1");
  CHECK(result.at("machine") == "z100");
  REQUIRE(result.at("points").size() == 1);
  const Json& point = result.at("points").at(0);
  CHECK(point.at("op") == "attention_decode");
  CHECK(point.at("num_key_value_heads") == 8);
  CHECK(point.at("block_size") == 16);
  CHECK(point.at("workgroups") == 2 * 8);
  CHECK(point.at("workgroups_per_unit").get<int>() >= 1);
  CHECK(point.at("accesses").get<int>() > 100);
  CHECK_THAT(point.at("kernel").get<std::string>(), ContainsSubstring("paged_attention_kernel<"));
  // K and V of 2 sequences, 100 tokens, 8 heads of 32 halves, and little else.
  const Json& dram = point.at("levels").at("DRAM");
  const double kv = 2.0 * 2 * 100 * 8 * 32 * 2;
  CHECK(dram.at("replayed_bytes").get<double>() >= kv);
  CHECK(dram.at("replayed_bytes").get<double>() <= 1.05 * kv);
  CHECK(dram.at("closed_form_bytes").get<double>() == Approx(dram.at("replayed_bytes").get<double>()).epsilon(0.05));
  for (const char* level : {"L1", "L2"})
    for (const char* rate : {"replayed_hit_rate", "closed_form_hit_rate"}) {
      CHECK(point.at("levels").at(level).at(rate).get<double>() >= 0);
      CHECK(point.at("levels").at(level).at(rate).get<double>() <= 1);
    }
  CHECK_FALSE(point.contains("reuse_distances"));
  const Json with_distances = run_for_json(replay({"--reuse-distances"})).at("points").at(0).at("reuse_distances");
  // Every line comes from DRAM once.
  CHECK(with_distances.at("first_touches").get<double>() == Approx(dram.at("replayed_bytes").get<double>() / 64));
}

TEST_CASE("replay sweeps KV heads and block sizes; the table fits a terminal") {
  const Json result = run_for_json(replay({"--kv-heads", "2,8", "--block-size", "1,64"}));
  REQUIRE(result.at("points").size() == 4);
  std::vector<std::pair<int, int>> points;
  for (const Json& point : result.at("points"))
    points.emplace_back(point.at("num_key_value_heads"), point.at("block_size"));
  CHECK(points == std::vector<std::pair<int, int>>{{2, 1}, {2, 64}, {8, 1}, {8, 64}});
  // A quarter of the KV heads, about a quarter of the bytes.
  const auto dram = [&](std::size_t index) {
    return result.at("points")[index].at("levels").at("DRAM").at("replayed_bytes").get<double>();
  };
  CHECK(dram(0) / dram(2) == Approx(0.25).margin(0.02));

  const Finished table = run_dculab(replay({"--kv-heads", "2,8", "--block-size", "1,64"}));
  CHECK(table.exit_code == 0);
  for (const std::string& line : lines_of(table.out)) CHECK(width(line) <= 100);
  // Four levels take no more room.
  const Finished four = run_dculab({"replay", "--model", "dculab-tiny", "--machine", "mi300x"});
  for (const std::string& line : lines_of(four.out)) CHECK(width(line) <= 100);
  for (const char* column : {"KV heads", "L2 bytes", "DRAM bytes", "ratio", "L2 hit"})
    CHECK_THAT(table.out, ContainsSubstring(column));

  const Finished csv = run_dculab(replay({"--kv-heads", "2,8", "--format", "csv"}));
  const std::vector<std::string> rows = lines_of(csv.out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].starts_with("op,num_key_value_heads,block_size,kernel,resources,accesses,workgroups,"));
  CHECK_THAT(rows[0], ContainsSubstring(",levels.DRAM.replayed_bytes,levels.DRAM.closed_form_bytes,"));
}

TEST_CASE("replay of other ops, and of prefill") {
  const Json ops = run_for_json(replay({"--op", "qkv_proj,rope_and_cache,silu_and_mul"}));
  REQUIRE(ops.at("points").size() == 3);
  CHECK(ops.at("points")[0].at("op") == "qkv_proj");
  CHECK(ops.at("points")[2].at("op") == "silu_and_mul");
  // The weights of Q, K and V in BF16.
  CHECK(ops.at("points")[0].at("levels").at("DRAM").at("replayed_bytes").get<double>() >= 3 * 256 * 256 * 2);
  const Json prefill = run_for_json(replay({"--phase", "prefill"}));
  CHECK(prefill.at("points").at(0).at("op") == "attention_prefill");
  // The int4 kernel: half a byte a weight, with scales and zeros.
  const Json int4 = run_for_json(replay({"--weights", "gptq-int4", "--op", "down_proj"}));
  CHECK(int4.at("points")[0].at("kernel") == "gptq_gemv_kernel<64, 2, Half>");
  // Waves of 32 on a machine that has them.
  const Json nvidia = run_for_json({"replay", "--model", "dculab-tiny", "--machine", "a100-80gb-sxm"});
  CHECK(nvidia.at("points").at(0).at("resources") == "sm_80");
}

TEST_CASE("replays that cannot be") {
  check_refused({"replay", "--model", "dculab-tiny", "--machine", "a100-80gb-sxm", "--weights", "f16", "--op", "o_proj",
                 "--batch", "16"},
                {"o_proj", "vendor's library"});
  check_refused(replay({"--op", "attention"}), {"this step has no op 'attention'", "attention_decode", "qkv_proj"});
  check_refused(replay({"--block-size", "48"}), {"48", "power of two"});
  check_refused(replay({"--block-size", "0"}), {"--block-size"});
  check_refused(replay({"--kv-heads", "3"}), {"num_key_value_heads (3)"});
  check_refused(replay({"--kv-cache-dtype", "f32"}), {"f32 is not supported on the GPU"});
  check_refused({"replay", "--model", "dculab-tiny", "--machine", "z100", "--context", "5000"},
                {"5000", "max_position_embeddings"});
  const Folder folder;
  const std::string cpu = folder.write("cpu.yaml", kGenerousCpu);
  check_refused({"replay", "--model", "dculab-tiny", "--machine", cpu}, {"generous-cpu is a CPU", "those of GPUs"});
}

}  // namespace
}  // namespace dculab::cli::test
