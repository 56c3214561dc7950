// What others take from a served step: other processes, the host of a virtual machine.
//
//   pauses = (1 / interference_free - 1) * price / (1 + price / 100 ms)
//
// A price is that of a typical step. Most short steps meet no pause and some a long one, so that on average they take
// longer than typical; a long step typically has its share of pauses in it already. 100 ms is an assumption, chosen
// beside served steps of SmolLM2-135M on two virtual cores of an AMD EPYC: means of those of up to 15 ms lay 4 to 8 %
// above their medians, of those of 0.2 to 0.4 s 1.5 to 4 %.
#pragma once

#include "core/units.hpp"

namespace dculab::sim {

// The part of a step's price that pauses lengthen as they do a short step.
[[nodiscard]] inline Seconds open_to_pauses(Seconds price) {
  constexpr Seconds kLong(0.1);
  return price / (1 + price / kLong);
}

}  // namespace dculab::sim
