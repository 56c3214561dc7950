#include "config/unit_text.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

// What is wrong with a text, "" when nothing is.
std::string refusal_of_quantity(Dimension dimension, const std::string& text) {
  try {
    static_cast<void>(parse_in(dimension, text));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST_CASE("every unit of the table is read and written") {
  for (const Unit& unit : units()) {
    const std::string symbol(unit.symbol);
    INFO(symbol);
    CHECK(parse_in(unit.dimension, "3 " + symbol) == 3 * unit.factor);
    CHECK(parse_in(unit.dimension, "0.25" + symbol) == 0.25 * unit.factor);
    CHECK(parse_in(unit.dimension, "1e2  " + symbol) == 100 * unit.factor);
    const double value = 7.3 * unit.factor;
    CHECK(parse_in(unit.dimension, exact_text(unit.dimension, value)) == value);
    CHECK_FALSE(short_text(unit.dimension, value).empty());
  }
}

TEST_CASE("no unit is accepted for another dimension or with another case") {
  for (const Unit& unit : units())
    for (const Dimension dimension : {Dimension::bytes, Dimension::seconds, Dimension::flop, Dimension::frequency,
                                      Dimension::bandwidth, Dimension::flop_rate}) {
      if (dimension == unit.dimension) continue;
      const std::string symbol(unit.symbol);
      INFO(symbol);
      CHECK_THAT(refusal_of_quantity(dimension, "3 " + symbol), ContainsSubstring("write"));
    }
  CHECK_THAT(refusal_of_quantity(Dimension::bytes, "1 GB/s"), ContainsSubstring("'1 GB/s' is a bandwidth, not a size"));
}

TEST_CASE("GB is decimal and GiB is binary") {
  CHECK(parse_quantity<Bytes>("1 GB") == Bytes(1e9));
  CHECK(parse_quantity<Bytes>("1 GiB") == Bytes(1073741824.0));
  CHECK(parse_quantity<BytesPerSecond>("1024 GB/s") == BytesPerSecond(1.024e12));
  CHECK(parse_quantity<Hertz>("1.319 GHz").value() == 1.319e9);
  CHECK(parse_quantity<FlopsPerSecond>("192 TFLOP/s").value() == 192e12);
}

TEST_CASE("slips get a hint") {
  const std::vector<std::pair<std::string, std::string>> sizes{{"4 Gb", "write 'GB'"},
                                                               {"4 gb", "write 'GB'"},
                                                               {"4 mb", "write 'MB'"},
                                                               {"4 KB", "write 'kB'"},
                                                               {"4 kib", "write 'KiB'"},
                                                               {"4 bytes", "write 'B'"},
                                                               {"4", "has no unit; write for example '4 GiB'"},
                                                               {"GiB", "is not a size"},
                                                               {"", "is not a size"},
                                                               {"-4 GiB", "is negative"},
                                                               {"-0 B", "is negative"},
                                                               {"nan GiB", "is not finite"},
                                                               {"inf GiB", "is not finite"},
                                                               {"1e400 B", "too large"},
                                                               {"1e308 TiB", "too large"},
                                                               {"4 GiB x", "unknown unit 'GiB x'"},
                                                               {"1,024 B", "unknown unit ',024 B'"},
                                                               {"0x10 B", "unknown unit 'x10 B'"},
                                                               {"4 GiB ", "unknown unit 'GiB '"}};
  for (const auto& [text, message] : sizes) {
    INFO(text);
    CHECK_THAT(refusal_of_quantity(Dimension::bytes, text), ContainsSubstring(message));
  }
  CHECK_THAT(refusal_of_quantity(Dimension::bandwidth, "900 GBps"), ContainsSubstring("write 'GB/s'"));
  CHECK_THAT(refusal_of_quantity(Dimension::bandwidth, "900 Gb/s"), ContainsSubstring("write 'GB/s'"));
  CHECK_THAT(refusal_of_quantity(Dimension::flop_rate, "15 TFLOPS"), ContainsSubstring("write 'TFLOP/s'"));
  CHECK_THAT(refusal_of_quantity(Dimension::flop_rate, "392 TOPS"), ContainsSubstring("write 'TFLOP/s'"));
  CHECK_THAT(refusal_of_quantity(Dimension::seconds, "3 \xc2\xb5s"), ContainsSubstring("write 'us'"));
  CHECK_THAT(refusal_of_quantity(Dimension::seconds, "3 MS"), ContainsSubstring("write 'ms'"));
}

TEST_CASE("figures in files read back as the same double") {
  CHECK(exact_text(BytesPerSecond(1.024e12)) == "1024 GB/s");
  CHECK(exact_text(Bytes(34359738368.0)) == "32 GiB");
  CHECK(exact_text(Bytes(64)) == "64 B");
  CHECK(exact_text(BytesPerSecond(84415625e3)) == "84.415625 GB/s");
  CHECK(exact_text(Seconds(0)) == "0 s");
  CHECK(exact_text(Dimension::seconds, parse_in(Dimension::seconds, "60 ns")) == "60 ns");
  double value = 1.0 / 3.0;
  for (int step = 0; step < 2000; ++step) {
    value = value * 1.0371 > 1e15 ? 1e-12 : value * 1.0371;
    for (const Dimension dimension : {Dimension::bytes, Dimension::seconds, Dimension::frequency, Dimension::flop_rate})
      REQUIRE(parse_in(dimension, exact_text(dimension, value)) == value);
  }
}

TEST_CASE("reports show three digits") {
  CHECK(short_text(Seconds(12.34e-6)) == "12.3 us");
  CHECK(short_text(Seconds(0)) == "0 ns");
  CHECK(short_text(Seconds(999.7e-6)) == "1 ms");
  CHECK(short_text(Seconds(-0.25)) == "-250 ms");
  CHECK(short_text(Seconds(4000)) == "4000 s");
  CHECK(short_text(Seconds(0.5e-9)) == "0.5 ns");
  CHECK(short_text(Bytes(1.23 * 1073741824.0)) == "1.23 GiB");
  CHECK(short_text(Bytes(64)) == "64 B");
  CHECK(short_text(Bytes(16 * 1073741824.0)) == "16 GiB");
  CHECK(short_text(BytesPerSecond(768e9)) == "768 GB/s");
  CHECK(short_text(FlopsPerSecond(21.6e12)) == "21.6 TFLOP/s");
  CHECK(short_text(Hertz(1.319e9)) == "1.32 GHz");
  CHECK(short_text(Seconds(std::numeric_limits<double>::infinity())) == "inf");
}

}  // namespace
}  // namespace dculab::config
