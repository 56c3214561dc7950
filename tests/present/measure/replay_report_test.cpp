// Replayed kernels as people and programs see them.
#include "present/measure/replay_report.hpp"

#include <algorithm>

#include "present/output/csv_text.hpp"
#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

study::ReplayedOp op_of(const std::string& name, int block_size) {
  study::ReplayedOp op{.kv_heads = 8, .block_size = block_size, .comparison = {}};
  op.comparison.op = name;
  op.comparison.kernel = "a kernel";
  op.comparison.resources = "assumed";
  op.comparison.workgroups_per_unit = 2;
  op.comparison.levels = {{"L1", Bytes(4e6), Bytes(4e6), 0.5, 0.5},
                          {"L2", Bytes(2e6), Bytes(1e6), 0.25, 0.12345},
                          {"DRAM", Bytes(1e6), Bytes(1e6), 0, 0}};
  return op;
}

ReplayedStep replayed_step(std::size_t num_ops) {
  return {.model = "tiny", .machine = "z100", .phase = "decode", .batch = 4, .context = 100, .num_ops = num_ops};
}

TEST_CASE("a table has what reaches the second level and DRAM, JSON and CSV have all levels") {
  const std::vector<study::ReplayedOp> ops{op_of("attention_decode", 8), op_of("attention_decode", 16)};
  const Report report = replay_report(replayed_step(1), ops);
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  CHECK(report.heading ==
        std::vector<std::string>{"tiny on z100: attention_decode, decode, batch 4, context 100; cold caches",
                                 "a kernel, 2 workgroups/unit (assumed)"});
  const Table& table = report.tables.at(0);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.columns[2] == "L2 bytes");
  CHECK(table.rows[0][4] == "0.500");       // 1e6 / 2e6
  CHECK(table.rows[0].back() == "12.3 %");  // to a tenth
  CHECK(report.json["points"][1]["block_size"] == 16);
  CHECK(report.json["points"][0]["levels"]["L1"]["replayed_bytes"] == 4e6);
  CHECK_FALSE(report.json["points"][0].contains("reuse_distances"));
  const CsvTable csv = csv_of(report);
  CHECK(csv.rows == 2);
  for (const char* header :
       {"levels.L1.replayed_bytes", "levels.L2.closed_form_hit_rate", "levels.DRAM.replayed_bytes"})
    CHECK(std::ranges::count(csv.columns, header, &CsvTable::Column::header) == 1);
}

TEST_CASE("several ops are told apart by a column") {
  const Report report = replay_report(replayed_step(2), {op_of("qkv_proj", 16), op_of("o_proj", 16)});
  CHECK(report.tables.at(0).columns.front() == "op");
  CHECK(report.tables.at(0).rows[1].front() == "o_proj");
  CHECK(report.heading.front() == "tiny on z100: decode, batch 4, context 100; cold caches");
}

}  // namespace
}  // namespace dculab::present
