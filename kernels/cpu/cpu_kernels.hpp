// The kernels of a transformer layer on the CPU: Highway, dispatched at run time to the widest vectors there are.
// Throw std::invalid_argument for what they do not serve: weights other than f32, f16, bf16 and packed integers.
// Every result is bit for bit the same for any number of threads, any batch composition and any KV block size, and the
// same whether a token was computed by decode or by (chunked) prefill.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/cpu/thread_pool.hpp"
#include "kernels/ops.hpp"

namespace dculab::kernels::cpu {

// Scratch memory that kernels grow and keep; one per engine, never used by two kernels at once.
class Workspace {
 public:
  // At least `count` floats on a cache line boundary, contents unspecified, valid until the next call.
  [[nodiscard]] float* floats(std::size_t count);

 private:
  std::vector<float> storage_;
};

// Up to this m a plain float weight is read where it lies; beyond, it is packed first. The time of a product jumps
// there.
inline constexpr int kStreamedRows = 16;

// In bytes. Where the system does not say how large L2 is, it counts as 512 KiB.
[[nodiscard]] std::ptrdiff_t half_of_l2();

// Reads every weight from memory once while m is small (decode); a tiled matrix product for large m (prefill). Weights
// are plain floats, FP8 (sums over in-features that share a scale are multiplied by it) or packed int4 and int8
// (packed_weights.hpp). The bits do not depend on half_of_l2.
void matmul(ThreadPool& threads, Workspace& workspace, const MatmulArgs& args,
            std::ptrdiff_t half_of_l2 = cpu::half_of_l2());

void rms_norm(ThreadPool& threads, const RmsNormArgs& args);
void layer_norm(ThreadPool& threads, const LayerNormArgs& args);
void embedding(ThreadPool& threads, const EmbeddingArgs& args);
void head_norm(ThreadPool& threads, const HeadNormArgs& args);
void residual_add(ThreadPool& threads, const ResidualAddArgs& args);
void soft_cap(ThreadPool& threads, const SoftCapArgs& args);
void silu_mul(ThreadPool& threads, const SiluMulArgs& args);
void gelu_mul(ThreadPool& threads, const GeluMulArgs& args);
void gelu(ThreadPool& threads, const GeluArgs& args);

// Without cos_sin nothing is rotated.
void rope_and_cache(ThreadPool& threads, const RopeAndCacheArgs& args);

// Online softmax over KV tiles, partitions of the context combined by log-sum-exp; no L x L matrix.
// Preconditions: head_dim is a multiple of 8; context_lens[i] >= the new tokens of sequence i.
void paged_attention(ThreadPool& threads, Workspace& workspace, const PagedAttentionArgs& args);

// The vector instruction sets compiled in that this CPU has, best first, as Highway names them: "AVX3", "AVX2", ...
[[nodiscard]] std::vector<std::string_view> vector_targets();

// Makes all kernels use one of vector_targets() from now on; the best is used without it. Call while none runs.
void select_vector_target(std::string_view target);

}  // namespace dculab::kernels::cpu
