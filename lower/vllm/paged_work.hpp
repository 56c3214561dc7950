// What vLLM's paged kernel does besides waiting for memory: it has no matrix instructions, so its vector units go over
// every value of K and V once for each query head.
//
//   K   max(wave / block_size, 1) lanes share a token and fetch 16 bytes of it together: the smaller the block, the
//       narrower a lane's load, the more loads, and the more shuffles to add up a score
//   V   a lane has 16 bytes along the tokens of a block, so a small block leaves fewer lanes for each row of V
//   a block adds two look-ups with their 64-bit addresses, one for K and one for V
//
// Instructions are counted from the loops of csrc/attention/attention_kernels.cuh (vllm-project/vllm): of a value of K
// two conversions to F32 and a multiply-add, of a pair of V a multiplication and an addition. Conversions and pairs go
// at the rate of packed values.
#pragma once

#include "core/op.hpp"
#include "lower/attention_walk.hpp"
#include "lower/device.hpp"

namespace dculab::lower::vllm {

// Lane instructions per token, of a workgroup that serves `heads` query heads of one KV head.
[[nodiscard]] VectorWork paged_work_per_token(const AttentionWork& work, int heads, int wave_size);

// Each wave walks blocks of its own, twice.
[[nodiscard]] TableLookUp paged_look_up(const Device& device);

}  // namespace dculab::lower::vllm
