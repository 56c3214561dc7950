// Tables as text: what is aligned how, and what becomes of one that is wider than the terminal.
#include "present/output/table_text.hpp"

#include <sstream>
#include <string>

#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    widest = std::max(widest, columns);
  }
  return widest;
}

[[nodiscard]] Table machines() {
  Table table;
  table.title = "Machines";
  table.columns = {"machine", "time", "what limits it", "sequences"};
  table.rows = {{"z100", "12.3 ms", "DRAM", "4"}, {"k100-ai", "9.10 ms", "arithmetic of products", "-"}};
  table.notes = {"a note"};
  return table;
}

TEST_CASE("numbers are aligned right, words left") {
  CHECK(table_text(machines(), std::nullopt) ==
        "Machines\n"
        "machine     time  what limits it          sequences\n"
        "───────────────────────────────────────────────────\n"
        "z100     12.3 ms  DRAM                            4\n"
        "k100-ai  9.10 ms  arithmetic of products          -\n"
        "a note\n");
}

TEST_CASE("a number may have a sign, a unit, an end and a remark") {
  for (const char* cell : {"12", "-3", "−4.5 %", "+4.5 %", "± 2 %", "1.2e+07", "8 .. 16", "16 (memory)", "3 of 4",
                           "2.1x", "≥ 64", "16/32", "12: no room", "4, 8"})
    CHECK(is_number(cell));
  for (const char* cell : {"", "-", "z100", "f16", "4x4", "7b", "no room", "3-bit"}) CHECK_FALSE(is_number(cell));
}

TEST_CASE("a table with room is as it would be without a terminal") {
  CHECK(table_text(machines(), 51) == table_text(machines(), std::nullopt));
}

TEST_CASE("words are wrapped where there is no room") {
  CHECK(table_text(machines(), 47) ==
        "Machines\n"
        "machine     time  what limits it      sequences\n"
        "───────────────────────────────────────────────\n"
        "z100     12.3 ms  DRAM                        4\n"
        "k100-ai  9.10 ms  arithmetic of               -\n"
        "                  products\n"
        "a note\n");
}

TEST_CASE("a table with a usual width has it where no terminal says another, as far as words can be wrapped") {
  Table table = machines();
  table.usual_width = 47;
  CHECK(table_text(table, std::nullopt) == table_text(machines(), 47));
  CHECK(table_text(table, 51) == table_text(machines(), std::nullopt));
  CHECK(table_text(table, 30) == table_text(machines(), 30));
  table.rows.front().front() = "a-machine-whose-name-is-one-very-long-word";
  table.usual_width = 60;
  const std::string text = table_text(table, std::nullopt);
  CHECK_THAT(text, ContainsSubstring("\na-machine-whose-name-is-one-very-long-word  12.3 ms  DRAM "));
  CHECK(text.find("\n\n") == std::string::npos);  // in one block
}

TEST_CASE("columns without room go below the others, after those that tell the rows apart") {
  const std::string text = table_text(machines(), 30);
  CHECK(widest_line(text) <= 30);
  CHECK(text ==
        "Machines\n"
        "machine     time\n"
        "────────────────\n"
        "z100     12.3 ms\n"
        "k100-ai  9.10 ms\n"
        "\n"
        "machine  what limits it\n"
        "─────────────────────────\n"
        "z100     DRAM\n"
        "k100-ai  arithmetic of\n"
        "         products\n"
        "\n"
        "machine  sequences\n"
        "──────────────────\n"
        "z100             4\n"
        "k100-ai          -\n"
        "a note\n");
}

TEST_CASE("a word that is longer than its column is broken, letters of several bytes whole") {
  Table table;
  table.columns = {"what", "is"};
  std::string word;
  for (int letter = 0; letter < 40; ++letter) word += "ä";
  table.rows = {{"ä", word}};
  const std::string text = table_text(table, 38);
  CHECK(widest_line(text) == 38);
  CHECK_THAT(text, ContainsSubstring("ä     " + word.substr(0, 64) + "\n      " + word.substr(64) + "\n"));
}

TEST_CASE("rows of a sweep are told apart by as many columns as it takes") {
  Table table;
  table.columns = {"block", "heads", "step", "what limits it"};
  table.rows = {{"16", "8", "24.2 ms", "DRAM"}, {"16", "32", "42.7 ms", "DRAM"}, {"64", "8", "24.2 ms", "no room"}};
  CHECK(table_text(table, 26).find("\n\nblock  heads  what\n") != std::string::npos);
}

TEST_CASE("a text that begins with a number is wrapped") {
  Table table;
  table.columns = {"clock", "source"};
  table.rows = {{"1.6 GHz", "1.6 GHz of the vendor's table, 1.4 GHz of a card that was asked"},
                {"1.5 GHz", "card page"},
                {"1.4 GHz", "data sheet"}};
  const std::string text = table_text(table, 50);
  CHECK(widest_line(text) <= 50);
  CHECK(text.find("\n\n") == std::string::npos);  // in one block
}

TEST_CASE("a remark among numbers does not make them words, a text does") {
  Table table;
  table.columns = {"is"};
  table.rows = {{"16 KiB"}, {"8 MiB"}, {"no room"}};
  CHECK(table_text(table, std::nullopt).find("\n  8 MiB\n") != std::string::npos);
  table.rows.back() = {"a card of which nobody says what it is"};
  CHECK(table_text(table, std::nullopt).find("\n8 MiB\n") != std::string::npos);
}

}  // namespace
}  // namespace dculab::present
