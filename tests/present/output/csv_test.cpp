// CSV of a table: what programs read.
#include <string>

#include "present/output/show.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string csv_of(Table table) {
  const files::test::TemporaryFolder folder;
  const std::string file = folder.path("table.csv");
  show({"dculab/test/1", {"a heading"}, {std::move(table)}, Json::object()},
       {.format = Format::csv, .file = file, .report_file = ""});
  return folder.read("table.csv");
}

TEST_CASE("a column of intervals is two columns of numbers") {
  Table table;
  table.columns = {"block", "90 % interval", "bound"};
  table.rows = {{"8", Cell("1 ms .. 2 ms", 0.001, 0.002), "DRAM"}, {"16", "", "DRAM"}};
  CHECK(csv_of(table) == "block,90 % interval low,90 % interval high,bound\n8,0.001,0.002,DRAM\n16,,,DRAM\n");
}

TEST_CASE("no two columns have one name, and none has none") {
  Table table;
  table.columns = {"", "hit", "hit"};
  table.rows = {{"qkv_proj", Cell("50 %", 0.5), Cell("75 %", 0.75)}};
  CHECK(csv_of(table) == "column 1,hit,hit 2\nqkv_proj,0.5,0.75\n");
  table.csv_columns = {"op", "L1 hit", "L2 hit"};
  CHECK(csv_of(table) == "op,L1 hit,L2 hit\nqkv_proj,0.5,0.75\n");
}

}  // namespace
}  // namespace dculab::present
