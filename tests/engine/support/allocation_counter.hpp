// How often this program has asked for heap memory so far, in any thread.
#pragma once

namespace dculab::engine {

[[nodiscard]] int num_allocations();

}  // namespace dculab::engine
