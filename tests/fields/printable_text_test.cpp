#include "fields/printable_text.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace dculab {

TEST_CASE("a terminal is given no control characters") {
  CHECK(printable("plain\ttext\n") == "plain\ttext\n");
  CHECK(printable("\x1b[2J\x07\r\x7f") == "\\x1b[2J\\x07\\x0d\\x7f");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\u0080\u009b31m\u00a0") == "\\x80\\x9b31m\u00a0");
}

TEST_CASE("a terminal is given nothing that turns the direction of writing") {
  CHECK(printable("user\u202etxt.exe") == "user\\u202etxt.exe");
  CHECK(printable("\u2066x\u2069\u200f\u061c") == "\\u2066x\\u2069\\u200f\\u061c");
  CHECK(printable("שלום €") == "שלום €");
}

TEST_CASE("bytes that are not UTF-8 are named") {
  CHECK(printable("caf\xe9") == "caf\\xe9");
  CHECK(printable("\x9b"
                  "31m") == "\\x9b31m");
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");                                // half of a character
  CHECK(printable("\xc0\xaf\xed\xa0\x80").find('\xc0') == std::string::npos);  // overlong, and a surrogate
  CHECK(printable("😀") == "😀");
}

TEST_CASE("long values are cut between characters") {
  CHECK(shortened(std::string(200, 'a')) == std::string(200, 'a'));
  CHECK(shortened(std::string(201, 'a')) == std::string(200, 'a') + "...");
  CHECK(shortened("aé", 2) == "a...");
  CHECK(shortened("a€", 3) == "a...");
  CHECK(shortened("😀", 3) == "...");
  CHECK(shortened(std::string(10, '\x80'), 8).size() <= 11);  // no character begins anywhere near
}

TEST_CASE("a value in quotes stays on its line") {
  CHECK(in_quotes("a'b") == "'a'b'");
  CHECK(in_quotes("a\nb") == "'a\\nb'");
  const std::string cut = in_quotes(std::string(1000, 'x'));
  CHECK(cut.size() == 1 + 200 + 3 + 1);
  CHECK(cut.ends_with("x...'"));
}

TEST_CASE("digits are grouped by thousands") {
  CHECK(grouped_digits(0) == "0");
  CHECK(grouped_digits(999) == "999");
  CHECK(grouped_digits(2'999'981) == "2,999,981");
}

}  // namespace dculab
