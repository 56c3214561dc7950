// What C++20's standard library has and libc++ 13, the one of Debian 12's emscripten 3.1.6, lacks: algorithms of
// std::ranges, std::bit_cast, to_chars and from_chars of doubles, std::jthread. The preset `web` includes this file
// before every source; no other build sees it. Each does what the standard says for the calls that are in this
// repository. A newer emscripten has them all: then remove this file and its line in CMakePresets.json.
#pragma once

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

static_assert(_LIBCPP_VERSION < 14000, "this standard library is newer than bindings/web/standard_library.hpp");

namespace std {

template <class To, class From>
[[nodiscard]] constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

// A decimal number without a leading space or plus; strtod rounds correctly.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string_view text(first, static_cast<size_t>(last - first));
  const size_t sign = text.starts_with('-') ? 1 : 0;
  const bool is_word = text.size() > sign && isalpha(static_cast<unsigned char>(text[sign])) != 0;  // inf, nan
  const string number(is_word ? text : text.substr(0, text.find_first_not_of("0123456789.eE+-")));
  if (number.size() == sign || number[sign] == '+' || number[sign] == '-') return {first, errc::invalid_argument};
  char* end = nullptr;
  errno = 0;
  const double read = strtod(number.c_str(), &end);
  if (end == number.c_str()) return {first, errc::invalid_argument};
  const char* stopped = first + (end - number.c_str());
  if (errno == ERANGE) return {stopped, errc::result_out_of_range};
  value = read;
  return {stopped, errc()};
}

// As printf's %g.
inline to_chars_result to_chars(char* first, char* last, double value, chars_format, int precision) {
  char text[64];
  const int size = snprintf(text, sizeof text, "%.*g", precision, value);
  if (size > last - first) return {last, errc::value_too_large};
  return {std::copy(text, text + size, first), errc()};
}

// The shortest text that reads back as the value: plain digits where they are no longer than those with an exponent.
inline to_chars_result to_chars(char* first, char* last, double value) {
  // Fifteen digits are the shortest text but for zeros, or too few.
  constexpr int kSure = 15, kLongest = 17;
  char scientific[32], plain[400];
  int digits = kSure, size = 0;
  do size = snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
  while (strtod(scientific, nullptr) != value && ++digits <= kLongest && value == value);
  const char* mark = static_cast<const char*>(memchr(scientific, 'e', static_cast<size_t>(size)));
  if (mark != nullptr && digits == kSure) {
    const char* last_digit = mark - 1;
    while (digits > 1 && *last_digit == '0') --last_digit, --digits;
    size = snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
    mark = static_cast<const char*>(memchr(scientific, 'e', static_cast<size_t>(size)));
  }
  const int exponent = mark == nullptr ? 0 : atoi(mark + 1);
  const int decimals = digits - 1 - exponent;
  const int plain_size = snprintf(plain, sizeof plain, "%.*f", decimals > 0 ? decimals : 0, value);
  const bool is_plain = mark == nullptr || plain_size <= size;
  const string_view text(is_plain ? plain : scientific, static_cast<size_t>(is_plain ? plain_size : size));
  if (static_cast<ptrdiff_t>(text.size()) > last - first) return {last, errc::value_too_large};
  return {std::copy(text.begin(), text.end(), first), errc()};
}

// Joined by its destructor. Without threads in the build, its constructor throws std::system_error.
class jthread {
 public:
  template <class Work, class... Arguments>
  explicit jthread(Work&& work, Arguments&&... arguments)
      : thread_(std::forward<Work>(work), std::forward<Arguments>(arguments)...) {}
  jthread(jthread&&) noexcept = default;
  jthread& operator=(jthread&&) noexcept = default;
  ~jthread() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  thread thread_;
};

namespace ranges {

namespace web {

// A condition of what a projection makes of an element.
template <class Condition, class Projection>
[[nodiscard]] constexpr auto projected(Condition& condition, Projection& projection) {
  return [&](auto&& element) -> bool {
    return std::invoke(condition, std::invoke(projection, std::forward<decltype(element)>(element)));
  };
}

// A comparison of what a projection makes of two elements.
template <class Comparison, class Projection>
[[nodiscard]] constexpr auto compared(Comparison& comparison, Projection& projection) {
  return [&](auto&& a, auto&& b) -> bool {
    return std::invoke(comparison, std::invoke(projection, std::forward<decltype(a)>(a)),
                       std::invoke(projection, std::forward<decltype(b)>(b)));
  };
}

}  // namespace web

template <class Range, class Condition, class Projection = identity>
constexpr auto find_if(Range&& range, Condition condition, Projection projection = {}) {
  return std::find_if(ranges::begin(range), ranges::end(range), web::projected(condition, projection));
}
template <class Range, class Condition, class Projection = identity>
constexpr auto find_if_not(Range&& range, Condition condition, Projection projection = {}) {
  return std::find_if_not(ranges::begin(range), ranges::end(range), web::projected(condition, projection));
}
template <class Range, class Value, class Projection = identity>
constexpr auto find(Range&& range, const Value& value, Projection projection = {}) {
  return std::find_if(ranges::begin(range), ranges::end(range),
                      [&](auto&& element) { return std::invoke(projection, element) == value; });
}
template <class Range, class Condition, class Projection = identity>
constexpr bool all_of(Range&& range, Condition condition, Projection projection = {}) {
  return std::all_of(ranges::begin(range), ranges::end(range), web::projected(condition, projection));
}
template <class Range, class Condition, class Projection = identity>
constexpr bool any_of(Range&& range, Condition condition, Projection projection = {}) {
  return std::any_of(ranges::begin(range), ranges::end(range), web::projected(condition, projection));
}
template <class Range, class Condition, class Projection = identity>
constexpr bool none_of(Range&& range, Condition condition, Projection projection = {}) {
  return std::none_of(ranges::begin(range), ranges::end(range), web::projected(condition, projection));
}
template <class Range, class Condition, class Projection = identity>
constexpr auto count_if(Range&& range, Condition condition, Projection projection = {}) {
  return std::count_if(ranges::begin(range), ranges::end(range), web::projected(condition, projection));
}
template <class Range, class Value, class Projection = identity>
constexpr auto count(Range&& range, const Value& value, Projection projection = {}) {
  return std::count_if(ranges::begin(range), ranges::end(range),
                       [&](auto&& element) { return std::invoke(projection, element) == value; });
}
template <class Range, class Other, class Same = equal_to>
constexpr bool equal(Range&& range, Other&& other, Same same = {}) {
  return std::equal(ranges::begin(range), ranges::end(range), ranges::begin(other), ranges::end(other), same);
}
template <class Range>
constexpr auto adjacent_find(Range&& range) {
  return std::adjacent_find(ranges::begin(range), ranges::end(range));
}

template <class Range, class Comparison = less, class Projection = identity>
constexpr void sort(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  std::sort(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <class Range, class Comparison = less, class Projection = identity>
void stable_sort(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  std::stable_sort(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <class Range, class Comparison = less, class Projection = identity>
constexpr bool is_sorted(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  return std::is_sorted(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <class Range, class Iterator>
constexpr void nth_element(Range&& range, Iterator nth) {
  std::nth_element(ranges::begin(range), nth, ranges::end(range));
}
template <class Range, class Value, class Comparison = less, class Projection = identity>
constexpr auto upper_bound(Range&& range, const Value& value, Comparison comparison = {}, Projection projection = {}) {
  return std::upper_bound(ranges::begin(range), ranges::end(range), value, [&](const auto& sought, auto&& element) {
    return std::invoke(comparison, sought, std::invoke(projection, element));
  });
}

template <class Range, class Result>
constexpr void copy(Range&& range, Result result) {
  std::copy(ranges::begin(range), ranges::end(range), result);
}
template <class Range, class Result, class Condition>
constexpr void copy_if(Range&& range, Result result, Condition condition) {
  std::copy_if(ranges::begin(range), ranges::end(range), result, condition);
}
template <class Range, class Result>
constexpr void move(Range&& range, Result result) {
  std::move(ranges::begin(range), ranges::end(range), result);
}
template <class Range, class Value>
constexpr void fill(Range&& range, const Value& value) {
  std::fill(ranges::begin(range), ranges::end(range), value);
}
template <class Range, class Old, class New>
constexpr void replace(Range&& range, const Old& before, const New& after) {
  std::replace(ranges::begin(range), ranges::end(range), before, after);
}
template <class Range>
constexpr void reverse(Range&& range) {
  std::reverse(ranges::begin(range), ranges::end(range));
}

template <class Range, class Comparison = less, class Projection = identity>
constexpr auto max_element(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  return std::max_element(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <class Range, class Comparison = less, class Projection = identity>
constexpr auto min_element(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  return std::min_element(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <class Range, class Comparison = less, class Projection = identity>
constexpr auto minmax_element(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  return std::minmax_element(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <range Range, class Comparison = less, class Projection = identity>
constexpr auto max(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  return *std::max_element(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}
template <range Range, class Comparison = less, class Projection = identity>
constexpr auto min(Range&& range, Comparison comparison = {}, Projection projection = {}) {
  return *std::min_element(ranges::begin(range), ranges::end(range), web::compared(comparison, projection));
}

}  // namespace ranges

}  // namespace std
