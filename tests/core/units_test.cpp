#include "core/units.hpp"

#include <type_traits>

#include "tests/support/catch.hpp"

using namespace dculab;

TEST_CASE("quotients and products carry their dimension", "[units]") {
  STATIC_REQUIRE(std::is_same_v<decltype(Bytes{} / Seconds{}), BytesPerSecond>);
  STATIC_REQUIRE(std::is_same_v<decltype(Bytes{} / BytesPerSecond{}), Seconds>);
  STATIC_REQUIRE(std::is_same_v<decltype(FlopCount{} / Bytes{}), FlopsPerByte>);
  STATIC_REQUIRE(std::is_same_v<decltype(FlopsPerSecond{} / BytesPerSecond{}), FlopsPerByte>);
  STATIC_REQUIRE(std::is_same_v<decltype(Cycles{} / Hertz{}), Seconds>);
  STATIC_REQUIRE(std::is_same_v<decltype(BytesPerCycle{} * Hertz{}), BytesPerSecond>);
  STATIC_REQUIRE(std::is_same_v<decltype(Seconds{} / Seconds{}), double>);
  STATIC_REQUIRE(std::is_same_v<decltype(Hertz{} * (Seconds{} / Cycles{})), double>);
}

TEST_CASE("a bare number is not a quantity, nor one quantity another", "[units]") {
  STATIC_REQUIRE_FALSE(std::is_convertible_v<double, Seconds>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<Seconds, double>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<Seconds, Bytes>);
}

TEST_CASE("reading 1 GB at 250 GB/s takes 4 ms", "[units]") {
  const BytesPerSecond bandwidth = 250.0 * kGB / Seconds(1);
  REQUIRE_THAT((kGB / bandwidth).value(), WithinRel(4e-3, 1e-15));
  REQUIRE(kGB / bandwidth < 5 * kMillisecond);
}

TEST_CASE("decimal and binary prefixes differ", "[units]") {
  REQUIRE(kGiB.value() == 1073741824.0);
  REQUIRE(kMiB.value() == 1048576.0);
  REQUIRE(kGB.value() == 1e9);
  REQUIRE(kGiB > kGB);
}

TEST_CASE("sums, scaling and comparison", "[units]") {
  Seconds time = 3 * kMicrosecond;
  time += kMicrosecond;
  time -= 2 * kMicrosecond;
  time *= 4;
  REQUIRE_THAT(time.value(), WithinRel(8e-6, 1e-12));
  REQUIRE_THAT(time / kNanosecond, WithinRel(8000.0, 1e-12));
  REQUIRE(Seconds{} == Seconds(0));
  REQUIRE(kNanosecond < kMicrosecond);
}
