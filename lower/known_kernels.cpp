// All kernels that stack files can name.
#include <array>

#include "lower/aiter/kernels.hpp"
#include "lower/dculab_cpu/kernels.hpp"
#include "lower/dculab_gpu/kernels.hpp"
#include "lower/flash_attention/kernels.hpp"
#include "lower/fused_experts/kernels.hpp"
#include "lower/gemm/kernels.hpp"
#include "lower/hygon/kernels.hpp"
#include "lower/kernel_library.hpp"
#include "lower/latent_attention/kernels.hpp"
#include "lower/llama_cpp/kernels.hpp"
#include "lower/nccl/kernels.hpp"
#include "lower/peer_memory/kernels.hpp"
#include "lower/sglang/kernels.hpp"
#include "lower/vllm/kernels.hpp"
#include "lower/weight_only/kernels.hpp"

namespace dculab::lower {
namespace {

constexpr std::array<const MatmulKernel*, 19> kMatmuls{
    &dculab_gpu::kMatmul,
    &gemm::kCublas,
    &gemm::kRocblas,
    &gemm::kRocblasHalf,
    &gemm::kHipblaslt,
    &gemm::kDeepGemm,
    &gemm::kSkinnyGemv,
    &aiter::kProducts,
    &weight_only::kVllmMarlin,
    &weight_only::kVllmGptq,
    &weight_only::kVllmGptqSpilling,
    &weight_only::kVllmGptqWidened,
    &weight_only::kSglangTritonGptq,
    &sglang::kBlockFp8,
    &sglang::kChannelFp8,
    &weight_only::kTorchWeightOnly,
    &weight_only::kTensorrtLlmWeightOnly,
    &llama_cpp::kIntegerMatmul,
    &llama_cpp::kQuantizedMatmul,
};

constexpr std::array<const AttentionKernel*, 20> kAttentions{
    &dculab_gpu::kAttention,
    &flash_attention::kFlashAttention2,
    &flash_attention::kFlashAttention3,
    &vllm::kPagedAttention,
    &vllm::kRocmPagedAttention,
    &vllm::kTritonUnified3d,
    &vllm::kTritonUnified2d,
    &aiter::kPagedAttention,
    &aiter::kFlashAttention,
    &hygon::kPagedAttention,
    &hygon::kReusingPagedAttention,
    &hygon::kFlashAttention,
    &latent_attention::kTritonMla,
    &latent_attention::kFlashMla,
    &latent_attention::kFlashMlaSparse,
    &latent_attention::kDtkFlashMlaSparse,
    &sglang::kTritonDecode,
    &sglang::kTritonExtend,
    &llama_cpp::kPerHead,
    &llama_cpp::kFlashAttention,
};

constexpr std::array<const CollectiveKernel*, 6> kCollectives{
    &nccl::kNccl,
    &nccl::kRccl,
    &peer_memory::kVllmCustomAllReduce,
    &peer_memory::kTorchIntraNodeComm,
    &peer_memory::kTorchSymmetricMemory,
    &peer_memory::kTensorrtLlmOneShot,
};

constexpr std::array<const ExpertKernel*, 5> kExperts{
    &fused_experts::kTuned, &fused_experts::kDefault, &fused_experts::kByValue, &fused_experts::kFlagGemsWidening,
    &llama_cpp::kExperts,
};

}  // namespace

std::span<const MatmulKernel* const> matmul_kernels() { return kMatmuls; }
std::span<const AttentionKernel* const> attention_kernels() { return kAttentions; }
std::span<const CollectiveKernel* const> collective_kernels() { return kCollectives; }
std::span<const ExpertKernel* const> expert_kernels() { return kExperts; }

}  // namespace dculab::lower
