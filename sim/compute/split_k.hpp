// A product on a GPU whose tiles are split along k, as GEMM libraries do where tiles are few.
//
// Into a whole number of parts, each of at least 256 values of k; tiles * parts workgroups run in whole rounds
// (parallelism.hpp). A second kernel adds the parts' F32 sums. Writing them hides behind arithmetic, as a matmul's
// other cache traffic does (step_price.hpp); the second kernel's reading does not:
//
//   adding = parts * m * n * 4 bytes / what the last cache delivers, and DRAM where that does not hold them
//
// A matrix-vector product has no tiles to split: its kernel hands out rows of w. Source of splits: CUTLASS,
// media/docs/efficient_gemm.md, "Split K".
#pragma once

#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"
#include "sim/compute/parallelism.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

[[nodiscard]] bool has_tiles(const Machine& machine, const Op& op);

// At most so many keep 256 values of k each; at least 1.
[[nodiscard]] double most_parts(const Op& op);

// Numbers of parts, above one, that keep more units busy than any smaller number: the others only add sums.
// `whole`: the product's parallelism unsplit. Empty where the op has_tiles not, or more of them than places.
[[nodiscard]] std::vector<double> splits_worth_trying(const Machine& machine, const Op& op, const Parallelism& whole);

[[nodiscard]] Parallelism split_along_k(const Machine& machine, const Parallelism& whole, double parts);

// Of the second kernel; none for one part.
[[nodiscard]] Seconds adding_time(const Machine& machine, const Op& op, double parts);

}  // namespace dculab::sim
