// Numbers that a refusal offers in place of one that cannot be: "1, 2, 4, 8 or 16".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab {

// "1, 2 or 4"; of more than 16 the first 15 and the last.
[[nodiscard]] std::string one_of(const std::vector<int>& numbers);

[[nodiscard]] std::string divisors_of(int number);
[[nodiscard]] std::string powers_of_two(int least, int most);

// What a text that is not written as a whole number may mean, in digits: "1000" for "1e3", "4000 or 4096" for "4k";
// empty where it means none.
[[nodiscard]] std::string whole_number_meant(std::string_view text);

// The number of a rate that is written with its unit: "3" for "3/s" and "3 requests/s"; empty of any other text.
[[nodiscard]] std::string rate_meant(std::string_view text);

}  // namespace dculab
