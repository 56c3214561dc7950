// What refusals of numbers offer.
#include "core/allowed_numbers.hpp"

#include "tests/support/catch.hpp"

namespace dculab {
namespace {

TEST_CASE("allowed numbers are listed") {
  CHECK(divisors_of(28) == "1, 2, 4, 7, 14 or 28");
  CHECK(divisors_of(1) == "1");
  CHECK(powers_of_two(1, 256) == "1, 2, 4, 8, 16, 32, 64, 128 or 256");
  CHECK(powers_of_two(16, 40) == "16 or 32");
  CHECK(one_of({}).empty());
  std::vector<int> many;
  for (int number = 1; number <= 100; ++number) many.push_back(number);
  CHECK(one_of(many) == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 ... 100");
}

TEST_CASE("what is not written as a whole number may mean one") {
  CHECK(whole_number_meant("1e3") == "1000");
  CHECK(whole_number_meant("4k") == "4000 or 4096");
  CHECK(whole_number_meant("1.5M") == "1500000 or 1572864");
  CHECK(whole_number_meant("16.0") == "16");
  for (const char* const text : {"x", "", "1.5", "3 GiB", "nan", "inf", "1e300", "1e999"})
    CHECK(whole_number_meant(text).empty());
}

TEST_CASE("a rate may be written with its unit") {
  CHECK(rate_meant("3/s") == "3");
  CHECK(rate_meant("0.5 requests/s") == "0.5");
  CHECK(rate_meant("2RPS") == "2");
  for (const char* const text : {"", "/s", "3", "3 s", "3/min", "3/ss"}) CHECK(rate_meant(text).empty());
}

}  // namespace
}  // namespace dculab
