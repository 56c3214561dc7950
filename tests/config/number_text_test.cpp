#include "config/number_text.hpp"

#include <limits>

#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

TEST_CASE("a number has as many significant digits as are asked for, and an exponent where it is very large or small") {
  CHECK(number(0) == "0");
  CHECK(number(12.345) == "12.3");
  CHECK(number(1234.5) == "1234");
  CHECK(number(0.0123456, 4) == "0.01235");
  CHECK(number(-2.5, 2) == "-2.5");
  CHECK(number(1.5e7) == "1.5e+07");
  CHECK(number(2e-4) == "0.0002");
  CHECK(number(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(number(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(number(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("programs get nine digits without trailing zeros") {
  CHECK(exact_number(0.5) == "0.5");
  CHECK(exact_number(123456789.25) == "123456789");
  CHECK(exact_number(1.0 / 3) == "0.333333333");
}

TEST_CASE("a share is written in percent, with its sign where it is a difference") {
  CHECK(percent(0.1234) == "12.3 %");
  CHECK(percent(0.1234, 2) == "12 %");
  CHECK(percent(2e-13, 2) == "0 %");
  CHECK(percent(-0.00009) == "0 %");
  CHECK(percent(0.00011, 2) == "0.011 %");
  CHECK(signed_percent(0.1234) == "+12.3 %");
  CHECK(signed_percent(-0.1234) == "−12.3 %");
  CHECK(signed_percent(-0.00009) == "+0 %");
}

}  // namespace
}  // namespace dculab::config
