// What texts measure, and how they are read.
#include "present/values/measure_text.hpp"

#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

TEST_CASE("a measure is a number with one of the units, in core units, or without one") {
  CHECK(find_measure("64 KiB")->value == 65536);
  CHECK(core_unit(*find_measure("64 KiB")->dimension) == "B");
  CHECK(find_measure("1.5 GHz")->value == 1.5e9);
  CHECK(core_unit(*find_measure("1.5 GHz")->dimension) == "Hz");
  CHECK(find_measure("0.66")->value == 0.66);
  CHECK_FALSE(find_measure("0.66")->dimension.has_value());
  for (const char* text : {"", "gfx906", "inf", "3 apples", "1 .. 16", "8, 16", "f16"})
    CHECK_FALSE(find_measure(text).has_value());
}

TEST_CASE("a measure is rounded where it has more digits than people read") {
  CHECK(readable("84415625 kB/s") == "84.4 GB/s");
  CHECK(readable("0.721533612") == "0.7215");
  CHECK(readable("1319.456 MHz") == "1.32 GHz");
  for (const char* text : {"1331.2 GB/s", "16 GiB", "0.00066", "131072", "a name of 1234567 letters", "200000000e"})
    CHECK(readable(text) == text);
}

}  // namespace
}  // namespace dculab::present
