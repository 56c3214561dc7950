// A device that counts what an executor asks of the one behind it.
#pragma once

#include <memory>
#include <utility>

#include "kernels/gpu/device.hpp"
#include "kernels/gpu/open_device.hpp"

namespace dculab::engine {

struct DeviceCounts {
  int allocations = 0;
  std::size_t allocated = 0;  // bytes
  std::size_t uploads = 0;    // bytes
  int marks_made = 0;
  int marks_recorded = 0;
};

class CountingDevice final : public kernels::gpu::Device {
 public:
  explicit CountingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  [[nodiscard]] const DeviceCounts& counts() const { return counts_; }

  [[nodiscard]] kernels::gpu::DeviceInfo info() const override { return device_->info(); }
  [[nodiscard]] void* allocate(std::size_t bytes, OperandRole holds) override {
    ++counts_.allocations;
    counts_.allocated += bytes;
    return device_->allocate(bytes, holds);
  }
  void release(void* memory) noexcept override { device_->release(memory); }
  [[nodiscard]] void* allocate_on_host(std::size_t bytes) override { return device_->allocate_on_host(bytes); }
  void release_on_host(void* memory) noexcept override { device_->release_on_host(memory); }
  void upload(void* destination, const void* source, std::size_t bytes) override {
    counts_.uploads += bytes;
    device_->upload(destination, source, bytes);
  }
  void download(void* destination, const void* source, std::size_t bytes) override {
    device_->download(destination, source, bytes);
  }
  void start_download(void* destination, const void* source, std::size_t bytes) override {
    device_->start_download(destination, source, bytes);
  }
  void copy(void* destination, const void* source, std::size_t bytes) override {
    device_->copy(destination, source, bytes);
  }
  void fill(void* destination, int byte, std::size_t bytes) override { device_->fill(destination, byte, bytes); }
  void synchronize() override { device_->synchronize(); }

  [[nodiscard]] std::unique_ptr<kernels::gpu::TimeMark> make_mark() override {
    ++counts_.marks_made;
    return device_->make_mark();
  }
  void record(kernels::gpu::TimeMark& mark) override {
    ++counts_.marks_recorded;
    device_->record(mark);
  }
  [[nodiscard]] Seconds between(const kernels::gpu::TimeMark& first, const kernels::gpu::TimeMark& second) override {
    return device_->between(first, second);
  }

  void embedding(const kernels::gpu::Embedding& args) override { device_->embedding(args); }
  void rms_norm(const kernels::gpu::RmsNorm& args) override { device_->rms_norm(args); }
  void layer_norm(const kernels::gpu::LayerNorm& args) override { device_->layer_norm(args); }
  void rotary_embedding(const kernels::gpu::RotaryEmbedding& args) override { device_->rotary_embedding(args); }
  void head_norm(const kernels::gpu::HeadNorm& args) override { device_->head_norm(args); }
  void residual_add(const kernels::gpu::ResidualAdd& args) override { device_->residual_add(args); }
  void route_tokens(const kernels::gpu::RouteTokens& args) override { device_->route_tokens(args); }
  void expert_matmul(const kernels::gpu::ExpertMatmul& args) override { device_->expert_matmul(args); }
  void expert_gptq_matmul(const kernels::gpu::ExpertGptqMatmul& args) override { device_->expert_gptq_matmul(args); }
  void combine_experts(const kernels::gpu::CombineExperts& args) override { device_->combine_experts(args); }
  void soft_cap(const kernels::gpu::SoftCap& args) override { device_->soft_cap(args); }
  void part_rotary_embedding(const kernels::gpu::PartRotaryEmbedding& args) override {
    device_->part_rotary_embedding(args);
  }
  void gelu_and_mul(const kernels::gpu::GeluAndMul& args) override { device_->gelu_and_mul(args); }
  void silu_and_mul(const kernels::gpu::SiluAndMul& args) override { device_->silu_and_mul(args); }
  void gelu(const kernels::gpu::Gelu& args) override { device_->gelu(args); }
  void top_k(const kernels::gpu::TopK& args) override { device_->top_k(args); }
  void reshape_and_cache(const kernels::gpu::ReshapeAndCache& args) override { device_->reshape_and_cache(args); }
  void copy_blocks(const kernels::gpu::CopyBlocks& args) override { device_->copy_blocks(args); }
  void quantize_groups(const kernels::gpu::KiviTokens& args) override { device_->quantize_groups(args); }
  void keep_residual(const kernels::gpu::KiviTokens& args) override { device_->keep_residual(args); }
  void update_block_bounds(const kernels::gpu::UpdateBlockBounds& args) override { device_->update_block_bounds(args); }
  void choose_critical_blocks(const kernels::gpu::ChooseCriticalBlocks& args) override {
    device_->choose_critical_blocks(args);
  }
  void paged_attention(const kernels::gpu::PagedAttention& args) override { device_->paged_attention(args); }
  void prefill_attention(const kernels::gpu::PrefillAttention& args) override { device_->prefill_attention(args); }
  void keep_sink_keys(const kernels::gpu::KeepSinkKeys& args) override { device_->keep_sink_keys(args); }
  void shift_sink_keys(const kernels::gpu::ShiftSinkKeys& args) override { device_->shift_sink_keys(args); }
  void attention_scores(const kernels::gpu::AttentionScores& args) override { device_->attention_scores(args); }
  void latent_attention(const kernels::gpu::LatentAttention& args) override { device_->latent_attention(args); }
  void gather_latents(const kernels::gpu::GatherLatents& args) override { device_->gather_latents(args); }
  void store_expanded(const kernels::gpu::StoreExpanded& args) override { device_->store_expanded(args); }
  void absorb_k(const kernels::gpu::Absorb& args) override { device_->absorb_k(args); }
  void absorb_v(const kernels::gpu::Absorb& args) override { device_->absorb_v(args); }
  void matmul(const kernels::gpu::Matmul& args) override { device_->matmul(args); }
  void gptq_matmul(const kernels::gpu::GptqMatmul& args) override { device_->gptq_matmul(args); }
  void int8_matmul(const kernels::gpu::Int8Matmul& args) override { device_->int8_matmul(args); }
  void quantize_rows(const kernels::gpu::QuantizeRows& args) override { device_->quantize_rows(args); }

 private:
  std::unique_ptr<Device> device_;
  DeviceCounts counts_;
};

}  // namespace dculab::engine
