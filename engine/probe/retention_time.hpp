// How long a cache that other tenants use too keeps data that is not read.
#pragma once

#include <span>

#include "core/units.hpp"

namespace dculab::engine {

// A set of memory that was read, left alone for `wait`, and read again in `pass`.
struct ReadAfter {
  Seconds wait;
  Seconds pass;
};

// The wait after which all but 1/e of the set has been driven out: its pass has grown from `warm`, the pass without a
// wait, by 1 - 1/e of what it grows by in the end. Between two waits as the line through both, over the logarithm of
// the wait. 0 where the longest wait does not slow the pass by a quarter: nothing that matters is driven out.
// Preconditions: `after` is not empty, in growing order of waits.
[[nodiscard]] Seconds retention_time(Seconds warm, std::span<const ReadAfter> after);

}  // namespace dculab::engine
