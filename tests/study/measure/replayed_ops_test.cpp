// Recorded kernels beside the closed form.
#include "study/measure/replayed_ops.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

OpToReplay op_of(const std::string& machine, int block_size) {
  return {config::read_scenario(
              "s.yaml", config::parse_value("s.yaml",
                                            "schema: dculab/scenario/1\nquestion: q\nmodel: dculab-tiny\n"
                                            "machine: " +
                                                machine + "\nkv_cache: {block_size: " + std::to_string(block_size) +
                                                "}\nworkload: {phase: decode, batch: 1, context_tokens: "
                                                "40}\n")),
          "attention_decode"};
}

TEST_CASE("ops are replayed in their order, and each level is asked for no more than the one above") {
  std::vector<double> shares;
  const std::vector<ReplayedOp> replayed =
      replay_ops({op_of("z100", 8), op_of("z100", 16)}, sim::ReuseMeasurement::on,
                 [&shares](const std::string&, double share) { shares.push_back(share); });
  CHECK(shares == std::vector<double>{0.5, 1});
  REQUIRE(replayed.size() == 2);
  CHECK(replayed[0].block_size == 8);
  CHECK(replayed[1].block_size == 16);
  for (const ReplayedOp& op : replayed) {
    CHECK(op.kv_heads == 8);
    CHECK(op.comparison.op == "attention_decode");
    CHECK(op.comparison.reuse);
    REQUIRE(op.comparison.levels.size() >= 2);
    for (std::size_t level = 1; level < op.comparison.levels.size(); ++level)
      CHECK(op.comparison.levels[level].replayed <= op.comparison.levels[level - 1].replayed);
  }
}

TEST_CASE("a CPU's kernels are not recorded") {
  CHECK_THROWS_WITH(
      replay_ops({op_of("x86-server", 16)}, sim::ReuseMeasurement::off, [](const std::string&, double) {}),
      ContainsSubstring("is a CPU; the kernels that are recorded are those of GPUs"));
}

}  // namespace
}  // namespace dculab::study
