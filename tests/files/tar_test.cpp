#include "files/tar.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tar_text.hpp"

using namespace dculab;
using namespace dculab::files;

TEST_CASE("an archive's plain files are found, with what is in them") {
  const std::string text = tar_member("results/", "", '5') + tar_member("results/a.txt", "hello") +
                           tar_member("pax", "30 mtime=1700000000.123456789\n", 'x') +
                           tar_member("./b", std::string(512, 'b')) + tar_member("empty", "") + tar_end();
  REQUIRE(is_tar(text));
  const auto members = tar_members("t.tar", text);
  REQUIRE(members.size() == 3);
  CHECK(members[0].name == "results/a.txt");
  CHECK(members[0].content == "hello");
  CHECK(members[1].name == "b");
  CHECK(members[1].content == std::string(512, 'b'));
  CHECK(members[2].name == "empty");
  CHECK(members[2].content.empty());
}

TEST_CASE("other texts are no archives") {
  CHECK(!is_tar(""));
  CHECK(!is_tar("ustar"));
  CHECK(!is_tar(std::string(600, 'x')));
}

TEST_CASE("an archive that names files outside of itself is refused") {
  for (const char* name : {"../secret", "/etc/passwd", "a/../../b", "..", "a/.."})
    CHECK_THROWS_WITH(tar_members("t.tar", tar_member(name, "x") + tar_end()),
                      ContainsSubstring("t.tar: names a file outside of itself, '" + std::string(name) + "'"));
  CHECK_THROWS_WITH(tar_members("t.tar", tar_member("../folder", "", '5') + tar_end()), ContainsSubstring("outside"));
  CHECK(tar_members("t.tar", tar_member("a..b/c", "x") + tar_end()).size() == 1);
}

TEST_CASE("links, devices, long names and names given twice are refused") {
  for (const char type : {'1', '2', '3', '4', '6', 'L', 'K', 'S'})
    CHECK_THROWS_WITH(tar_members("t.tar", tar_member("odd", "", type) + tar_end()),
                      ContainsSubstring("'odd' is a link or a device, or its name is too long"));
  CHECK_THROWS_WITH(tar_members("t.tar", tar_member("a", "1") + tar_member("./a", "2") + tar_end()),
                    ContainsSubstring("'a' is in it twice"));
}

TEST_CASE("a name cannot break a message into lines, or colour it") {
  CHECK(shown_name("a/\x1b[31mré\n\t\x7f") == "a/\\x1b[31mré\\x0a\\x09\\x7f");
  const std::string name = "../a\nr.tar: is fine";
  CHECK_THROWS_WITH(tar_members("t.tar", tar_member(name, "x") + tar_end()),
                    ContainsSubstring("'../a\\x0ar.tar: is fine'") && !ContainsSubstring("\n"));
}

TEST_CASE("an archive of very many files is refused") {
  std::string text;
  for (int i = 0; i < 1001; ++i) text += tar_member("f" + std::to_string(i), "");
  CHECK_THROWS_WITH(tar_members("t.tar", text + tar_end()), ContainsSubstring("more than 1000 files"));
}

TEST_CASE("damaged archives are refused") {
  const std::string good = tar_member("a", "hello");
  CHECK_THROWS_WITH(tar_members("t.tar", good), ContainsSubstring("breaks off"));                 // no end
  CHECK_THROWS_WITH(tar_members("t.tar", good.substr(0, 600)), ContainsSubstring("breaks off"));  // half a record
  CHECK_THROWS_WITH(tar_members("t.tar", good.substr(0, 512)), ContainsSubstring("breaks off"));  // no content
  CHECK_THROWS_WITH(tar_members("t.tar", ""), ContainsSubstring("breaks off"));
  for (const std::size_t place : {0U, 124U, 148U, 156U, 257U}) {
    std::string damaged = good + tar_end();
    damaged[place] = '7';
    CHECK_THROWS_WITH(tar_members("t.tar", damaged), ContainsSubstring("damaged"));
  }
  std::string huge = tar_member("a", "");  // says more than there is, with the right checksum
  huge.replace(124, 11, "77777777777");
  huge.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char byte : huge) sum += static_cast<unsigned char>(byte);
  char number[8];
  std::snprintf(number, sizeof number, "%06o", sum);
  huge.replace(148, 7, std::string(number, 7));
  CHECK_THROWS_WITH(tar_members("t.tar", huge + tar_end()), ContainsSubstring("damaged"));
}
