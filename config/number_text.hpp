// Numbers as people read them: "12.3", "1.23e+07", "4.56 %".
#pragma once

#include <cstdint>
#include <string>

namespace dculab::config {

// A number with `digits` significant digits.
[[nodiscard]] std::string number(double value, int digits = 3);

// All that programs need to know of a number: nine digits, no trailing zeros.
[[nodiscard]] std::string exact_number(double value);

// 0.1234 -> "12.3 %"; less than 0.01 % is "0 %"
[[nodiscard]] std::string percent(double share, int digits = 3);

// 0.1234 -> "+12.3 %", -0.1234 -> "−12.3 %"; no difference is "+0 %"
[[nodiscard]] std::string signed_percent(double share, int digits = 3);

// "1 sequence", "2 sequences"
[[nodiscard]] std::string counted(std::int64_t count, const std::string& noun);

}  // namespace dculab::config
