// Whether this test runs sanitized, where kernels take ten times as long: grids are thinned out then.
#pragma once

#include <cstddef>

namespace dculab {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Of a grid's points, or of the inputs of one test, sanitized runs take one of `every`.
constexpr bool thinned_out(std::size_t point, std::size_t every) { return kSanitized && point % every != 0; }

}  // namespace dculab
