// NVIDIA's and AMD's libraries of collectives. A pass over the devices (an all-reduce takes two, a gather one) sends
//
//   (p - 1) / p of the bytes from each device
//
// in p - 1 hops round a ring; RCCL in one hop where every device has a link of its own to every other, by its all-pairs
// algorithms. Hops and start are the machine's, which are those of small messages (LL); LL128 and Simple start and hop
// later by what NCCL says of NVLink. RCCL's figures differ from each other by as much.
//
// Sources: NCCL's model of its ring, src/graph/tuning.cc@01afd20; the same file and tools/msccl-algorithms of
// ROCm/rccl@9e22c79.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::nccl {

extern const CollectiveKernel kNccl;
extern const CollectiveKernel kRccl;

}  // namespace dculab::lower::nccl
