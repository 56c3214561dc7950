// DeepEP's dispatch and combine of expert parallelism, as deepseek-ai/DeepEP counts their bytes.
//
//   deepep_high_throughput  a token crosses the network once for each other node that it goes to, to the device of its
//                           own index there, which forwards it over NVLink to each device that has an expert of it. A
//                           copy passes the receiver's NVLink buffers even where it came from the device itself. Sums
//                           of a device's experts come back the same way. Both links work at the same time. Counts are
//                           exchanged before (one more pass over both links), and 20 of the units move the bytes
//   deepep_low_latency      every (token, expert) row goes alone and straight to its device, within the node over
//                           NVLink, beyond over the network; outputs come back likewise in 16 bits. The same warps feed
//                           one link after the other. No unit is taken while bytes are under way. For up to 256 tokens
//
// A row of FP8 has a scale of 4 bytes for 128 values; one that deepep_low_latency dispatches 16 bytes of header.
// Sources: deepseek-ai/DeepEP@0297fc8 docs/legacy.md and csrc/kernels/{intranode,internode,internode_ll}.cu,
// tests/test_*.py for what their figures count; units: DeepSeek-V3, arXiv:2412.19437, section 3.2.2. Nothing is fitted;
// docs/reference/cost-law.md has the published figures beside the prices.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::deep_ep {

extern const ExchangeKernel kHighThroughput;
extern const ExchangeKernel kLowLatency;

}  // namespace dculab::lower::deep_ep
