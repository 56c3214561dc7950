// NVIDIA's and AMD's libraries of collectives. An all-reduce passes twice over the devices, a gather once; a pass takes
// p - 1 hops round a ring, and (p - 1) / p of the bytes leave each device. Hops and start are the machine's, as
// messages of a few bytes see them; the protocols of larger ones start later and reach more of the link. Besides
//
//   NVLS   the switch adds up (Hopper and NVSwitch, more than two devices): bytes * (1 + 1 / p) leave each device, at
//   once MSCCL  MI300X sends small messages to all peers at once: two hops
//
// Sources: NVIDIA/nccl@5067397 src/graph/tuning.cc and ROCm/rccl@0cbce2a, the same file and tools/msccl-algorithms, for
// which ways there are. What protocols cost is fitted: NCCL's to nccl-tests of H100, H200 and A100 with 2, 4 and 8
// GPUs, 1 KiB to 512 MiB (ai-dynamo/aiconfigurator@095f58a, systems/data/*/comm/nccl): half of them within 5 %, A100's
// within 9; RCCL's to BW1000's table (HYGON-AI/hcu-train-simulator@55da280), the only one of a DCU. Cards without
// NVLink were not fitted.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::nccl {

extern const CollectiveKernel kNccl;
extern const CollectiveKernel kRccl;

}  // namespace dculab::lower::nccl
