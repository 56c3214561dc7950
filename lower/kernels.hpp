// Whose kernels run a step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op.hpp"

namespace dculab::lower {

enum class KernelLibrary : std::uint8_t {
  dculab,           // our own, of the kind of device
  vendor_gemm,      // products: cuBLAS, rocBLAS, hipBLASLt
  flash_attention,  // FlashAttention, on Hopper its third version
  paged_attention,  // decode: vLLM's v1 and v2
  per_head,         // decode: llama.cpp's products of Q and K, row by row
};

// The first of a list that serves an op runs it; the last serves all.
struct Kernels {
  std::vector<KernelLibrary> matmul{KernelLibrary::dculab};
  std::vector<KernelLibrary> attention{KernelLibrary::dculab};  // of decode
};

[[nodiscard]] KernelLibrary attention_library(const Op& op, const Kernels& kernels);

}  // namespace dculab::lower
