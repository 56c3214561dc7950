#include "engine/kv/gpu_kivi.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/kv/kivi.hpp"

namespace dculab::engine {

GpuKivi::GpuKivi(std::shared_ptr<kernels::gpu::Device> device, const KvCacheOptions& kv_cache)
    : device_(std::move(device)),
      residual_tokens_(kv_cache.residual_tokens),
      rows_(kv_cache.max_num_seqs),
      device_rows_(device_, sizeof(std::int32_t) * static_cast<std::size_t>(kv_cache.max_num_seqs)),
      first_{} {}

void GpuKivi::begin(const StepPlan& plan, int /*block_size*/) {
  const std::span<const std::int32_t> rows = rows_.assign(plan.batch);
  if (!rows.empty()) device_->upload(device_rows_.as(), rows.data(), rows.size_bytes());
  most_ = {};
  std::ptrdiff_t prefills = 0;
  for (const SequenceSlice& slice : plan.batch.sequences) {
    Most& most = most_[static_cast<std::size_t>(slice.phase)];
    const int groups = slice.context_tokens() / kKiviGroup - slice.num_computed_tokens / kKiviGroup;
    most.groups = std::max(most.groups, groups);
    most.kept = std::max(most.kept, std::min(slice.num_new_tokens, residual_tokens_));
    if (slice.phase == Phase::prefill) ++prefills;
  }
  first_[static_cast<std::size_t>(Phase::prefill)] = device_rows_.as<std::int32_t>();
  first_[static_cast<std::size_t>(Phase::decode)] = device_rows_.as<std::int32_t>() + prefills;
}

void GpuKivi::bind(GpuAttention& attention, Phase phase) const {
  const kernels::gpu::Input q = attention.queries();
  const kernels::gpu::Output first{const_cast<void*>(q.data), q.dtype};
  const std::int64_t k = attention.layer.heads.query_width(), v = k + attention.layer.heads.kv_width();
  attention.cache.extras =
      kernels::gpu::KiviOnDevice{.residual = attention.cache.extras.as<kernels::KiviExtras>().residual,
                                 .new_k = offset_by(first, k).data,
                                 .new_v = offset_by(first, v).data,
                                 .residual_rows = first_[static_cast<std::size_t>(phase)],
                                 .stride = static_cast<std::int32_t>(attention.layer.projected_width()),
                                 .new_dtype = q.dtype};
}

// Each decode has one new token.
void GpuKivi::narrow(kernels::gpu::PagedAttention& args, int first) const {
  auto kivi = args.cache.extras.as<kernels::gpu::KiviOnDevice>();
  const std::ptrdiff_t bytes = std::ptrdiff_t{first} * kivi.stride * bits(kivi.new_dtype) / 8;
  kivi.new_k = static_cast<const std::byte*>(kivi.new_k) + bytes;
  kivi.new_v = static_cast<const std::byte*>(kivi.new_v) + bytes;
  kivi.residual_rows += first;
  args.cache.extras = kivi;
}

kernels::gpu::KiviTokens GpuKivi::tokens_of(const GpuAttention& attention, int most) {
  return {.cache = attention.cache,
          .block_tables = attention.on_device.block_tables.as<std::int32_t>(),
          .max_blocks_per_seq = attention.inputs.max_blocks_per_seq,
          .query_start_loc = attention.on_device.query_start_loc.as<std::int32_t>(),
          .context_lens = attention.on_device.context_lens.as<std::int32_t>(),
          .num_seqs = attention.inputs.num_seqs,
          .most = most};
}

bool GpuKivi::write_cache(const GpuKvLayer& layer) {
  for (const Phase phase : {Phase::prefill, Phase::decode})
    if (const int groups = most_[static_cast<std::size_t>(phase)].groups; groups > 0)
      device_->quantize_groups(tokens_of(layer.of(phase), groups));
  return true;
}

void GpuKivi::after_attention(const GpuAttention& attention, Phase phase) {
  device_->keep_residual(tokens_of(attention, most_[static_cast<std::size_t>(phase)].kept));
}

}  // namespace dculab::engine
