// Whether this test runs sanitized, where kernels take ten times as long: grids are thinned out then.
#pragma once

namespace dculab {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace dculab
