#include "config/csv_text.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

using Cells = std::vector<std::string>;

std::vector<CsvRecord> records_of(std::string_view text) {
  CsvReader reader(text);
  std::vector<CsvRecord> records;
  for (CsvRecord record; reader.next(record);) records.push_back(record);
  return records;
}

TEST_CASE("cells, empty cells and quoted cells") {
  const auto records = records_of("a,b,c\n,\"x,y\",\n\"say \"\"hi\"\"\",\"\",2");
  REQUIRE(records.size() == 3);
  CHECK(records[0].cells == Cells{"a", "b", "c"});
  CHECK(records[1].cells == Cells{"", "x,y", ""});
  CHECK(records[2].cells == Cells{"say \"hi\"", "", "2"});
}

TEST_CASE("a byte order mark, CRLF and blank lines are not content") {
  const auto records = records_of("\xEF\xBB\xBF\r\na,\"b\"\r\n\r\nc,d\r\n");
  REQUIRE(records.size() == 2);
  CHECK(records[0].cells == Cells{"a", "b"});
  CHECK(records[0].line == 2);
  CHECK(records[1].cells == Cells{"c", "d"});
  CHECK(records[1].line == 4);
  CHECK(records_of("").empty());
  CHECK(records_of("\r\n\n").empty());
}

TEST_CASE("a line break inside a quoted cell belongs to it, and later lines keep their numbers") {
  const auto records = records_of("\"two\r\nlines\",1\nnext,2\n");
  REQUIRE(records.size() == 2);
  CHECK(records[0].cells == Cells{"two\r\nlines", "1"});
  CHECK(records[0].line == 1);
  CHECK(records[1].line == 3);
}

TEST_CASE("broken quoting is refused, and reading goes on behind it") {
  CsvReader reader("a\"b,1\n\"x\"y,2\nok,3\n\"open,4\n");
  CsvRecord record;
  CHECK_THROWS_WITH(reader.next(record), "a quote inside an unquoted cell; quote the whole cell");
  CHECK(record.line == 1);
  CHECK_THROWS_WITH(reader.next(record), "text behind a closing quote; double the quotes inside a quoted cell");
  CHECK(record.line == 2);
  REQUIRE(reader.next(record));
  CHECK(record.cells == Cells{"ok", "3"});
  CHECK_THROWS_WITH(reader.next(record), "a quoted cell does not end; close the quote");
  CHECK(record.line == 4);
  CHECK_FALSE(reader.next(record));
}

}  // namespace
}  // namespace dculab::config
