#include "files/gzip.hpp"

#include "core/error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using namespace dculab::files;

namespace {

// printf hello | gzip -n
constexpr char kHello[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
const std::string kPacked(kHello, sizeof(kHello) - 1);

}  // namespace

TEST_CASE("what is packed is unpacked, and what is not stays") {
  CHECK(unpacked("f", kPacked, 100) == "hello");
  CHECK(unpacked("f", kPacked + kPacked, 100) == "hellohello");  // as `cat a.gz b.gz` joins them
  CHECK(unpacked("f", "hello", 1) == "hello");
  CHECK(unpacked("f", "", 1).empty());
}

TEST_CASE("damaged and endless gzip files are refused") {
  CHECK_THROWS_WITH(unpacked("f.gz", kPacked.substr(0, 15), 100), ContainsSubstring("f.gz: is a gzip file"));
  CHECK_THROWS_WITH(unpacked("f.gz", kPacked.substr(0, 2), 100), ContainsSubstring("breaks off"));
  std::string broken = kPacked;
  broken[12] = '\x7f';
  CHECK_THROWS_AS(unpacked("f.gz", broken, 100), InputError);
  CHECK_THROWS_WITH(unpacked("f.gz", kPacked, 4), ContainsSubstring("more than 4 bytes"));
}
