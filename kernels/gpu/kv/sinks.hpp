// What the GPU's kernels of attention sinks are given. Rows are K, then V of a token; every pointer is device memory.
#pragma once

#include <cstdint>

#include "kernels/gpu/args.hpp"

namespace dculab::kernels::gpu {

// Keeps K and V of tokens as they are before any rotation, in f32.
struct KeepSinkKeys {
  Input kv{};                            // f32 or f16, [tokens of the step, stride], first `width` used
  std::int64_t stride = 0;               // values between tokens
  const std::int32_t* tokens = nullptr;  // [num_tokens] which are kept
  float* const* kept = nullptr;          // [num_tokens] where, from value first_kept on
  std::int64_t first_kept = 0;
  int num_tokens = 0;
  int width = 0;  // of K and V, a multiple of 8
};

// Rotates kept keys to their positions, and writes them and their values to the cache (f16, bf16, FP8 or int8; head_dim
// a multiple of 8).
struct ShiftSinkKeys {
  const float* const* kept = nullptr;  // [num_tokens], from value first_kept on: [2 * num_kv_heads * head_dim]
  std::int64_t first_kept = 0;
  const std::int32_t* positions = nullptr;  // [num_tokens]
  const std::int64_t* slots = nullptr;      // [num_tokens]
  const float* cos_sin = nullptr;           // [positions, rotary_dim]: cos of rotary_dim / 2 angles, then sin; or null
  KvCacheView cache{};
  int num_tokens = 0;
  int rotary_dim = 0;       // of a head, even
  bool neighbours = false;  // which pairs are turned
};

}  // namespace dculab::kernels::gpu
