// The Device of one build: hands every operation to its launcher.
#pragma once

#include <memory>
#include <utility>

#include "kernels/gpu/device.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

class StreamMark final : public TimeMark {
 public:
  Mark mark;
};

class StreamDevice final : public Device {
 public:
  StreamDevice(Stream stream, DeviceInfo info) : stream_(stream), info_(std::move(info)) {}
  StreamDevice(const StreamDevice&) = delete;
  StreamDevice& operator=(const StreamDevice&) = delete;
  ~StreamDevice() override { close_stream(stream_); }

  [[nodiscard]] DeviceInfo info() const override { return info_; }

  [[nodiscard]] void* allocate(std::size_t bytes, OperandRole holds) override {
    return DCULAB_GPU_BUILD::allocate(stream_, bytes, holds);
  }
  void release(void* memory) noexcept override { DCULAB_GPU_BUILD::release(stream_, memory); }
  [[nodiscard]] void* allocate_on_host(std::size_t bytes) override {
    return DCULAB_GPU_BUILD::allocate_on_host(stream_, bytes);
  }
  void release_on_host(void* memory) noexcept override { DCULAB_GPU_BUILD::release_on_host(stream_, memory); }
  void upload(void* destination, const void* source, std::size_t bytes) override {
    DCULAB_GPU_BUILD::copy(stream_, destination, source, bytes, CopyKind::upload);
  }
  void download(void* destination, const void* source, std::size_t bytes) override {
    DCULAB_GPU_BUILD::copy(stream_, destination, source, bytes, CopyKind::download);
    synchronize();
  }
  void start_download(void* destination, const void* source, std::size_t bytes) override {
    DCULAB_GPU_BUILD::copy(stream_, destination, source, bytes, CopyKind::download);
  }
  void copy(void* destination, const void* source, std::size_t bytes) override {
    DCULAB_GPU_BUILD::copy(stream_, destination, source, bytes, CopyKind::within);
  }
  void fill(void* destination, int byte, std::size_t bytes) override {
    DCULAB_GPU_BUILD::fill(stream_, destination, byte, bytes);
  }
  void synchronize() override { DCULAB_GPU_BUILD::synchronize(stream_); }

  [[nodiscard]] std::unique_ptr<TimeMark> make_mark() override { return std::make_unique<StreamMark>(); }
  void record(TimeMark& mark) override { static_cast<StreamMark&>(mark).mark.record(stream_); }
  [[nodiscard]] Seconds between(const TimeMark& first, const TimeMark& second) override {
    return Seconds(
        static_cast<const StreamMark&>(first).mark.seconds_until(static_cast<const StreamMark&>(second).mark));
  }

  void embedding(const Embedding& args) override { start(stream_, args); }
  void rms_norm(const RmsNorm& args) override { start(stream_, args); }
  void layer_norm(const LayerNorm& args) override { start(stream_, args); }
  void rotary_embedding(const RotaryEmbedding& args) override { start(stream_, args); }
  void head_norm(const HeadNorm& args) override { start(stream_, args); }
  void residual_add(const ResidualAdd& args) override { start(stream_, args); }
  void soft_cap(const SoftCap& args) override { start(stream_, args); }
  void part_rotary_embedding(const PartRotaryEmbedding& args) override { start(stream_, args); }
  void gelu_and_mul(const GeluAndMul& args) override { start(stream_, args); }
  void silu_and_mul(const SiluAndMul& args) override { start(stream_, args); }
  void gelu(const Gelu& args) override { start(stream_, args); }
  void top_k(const TopK& args) override { start(stream_, args); }
  void reshape_and_cache(const ReshapeAndCache& args) override { start(stream_, args); }
  void copy_blocks(const CopyBlocks& args) override { start(stream_, args); }
  void paged_attention(const PagedAttention& args) override { start(stream_, args); }
  void prefill_attention(const PrefillAttention& args) override { start(stream_, args); }
  void quantize_groups(const KiviTokens& args) override { start_quantize_groups(stream_, args); }
  void keep_residual(const KiviTokens& args) override { start_keep_residual(stream_, args); }
  void update_block_bounds(const UpdateBlockBounds& args) override { start(stream_, args); }
  void choose_critical_blocks(const ChooseCriticalBlocks& args) override { start(stream_, args); }
  void keep_sink_keys(const KeepSinkKeys& args) override { start(stream_, args); }
  void shift_sink_keys(const ShiftSinkKeys& args) override { start(stream_, args); }
  void attention_scores(const AttentionScores& args) override { start(stream_, args); }
  void latent_attention(const LatentAttention& args) override { start(stream_, args); }
  void gather_latents(const GatherLatents& args) override { start(stream_, args); }
  void store_expanded(const StoreExpanded& args) override { start(stream_, args); }
  void absorb_k(const Absorb& args) override { start_absorb_k(stream_, args); }
  void absorb_v(const Absorb& args) override { start_absorb_v(stream_, args); }
  void matmul(const Matmul& args) override { start(stream_, args); }
  void gptq_matmul(const GptqMatmul& args) override { start(stream_, args); }
  void int8_matmul(const Int8Matmul& args) override { start(stream_, args); }
  void quantize_rows(const QuantizeRows& args) override { start(stream_, args); }
  void route_tokens(const RouteTokens& args) override { start(stream_, args); }
  void expert_matmul(const ExpertMatmul& args) override { start(stream_, args); }
  void expert_gptq_matmul(const ExpertGptqMatmul& args) override { start(stream_, args); }
  void combine_experts(const CombineExperts& args) override { start(stream_, args); }

 private:
  Stream stream_;
  DeviceInfo info_;
};

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
