#include "engine/kv/gpu_kv_storage.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/kv/kv_layouts.hpp"
#include "engine/kv/random_values.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "kernels/gpu/kv_cache/swap_blocks.hpp"
#include "lower/dculab_gpu/latent_tiling.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kMaxPairs = 256;  // of one launch

void require_equal_heads(const ModelShape& model) {
  for (const LayerKind& kind : model.kinds)
    if (kind.cached_heads() != model.heads())
      throw InputError("the KV cache of " + model.name +
                       " would have layers of different heads, which is not supported");
}

// A row of latents is loaded 16 bytes at a time.
void require_latents(const Mla& attention, Dtype dtype) {
  if (lower::dculab_gpu::is_supported_latent(dtype, attention.kv_lora_rank, attention.latent_width())) return;
  throw InputError("latents of " + std::to_string(attention.kv_lora_rank) + " values with keys of " +
                   std::to_string(attention.qk_rope_head_dim) + " are not supported on the GPU in kv_cache_dtype " +
                   std::string(name(dtype)) + "; use f16 or bf16, or --device cpu");
}

[[nodiscard]] HostMemory make_host_pools(const std::shared_ptr<kernels::gpu::Device>& device, int num_blocks,
                                         std::size_t bytes_per_block) {
  if (num_blocks == 0) return {};
  const std::size_t bytes = bytes_per_block * static_cast<std::size_t>(num_blocks);
  const std::string what = std::to_string(num_blocks) + " blocks for swapping";
  require_memory(what.c_str(), Bytes(static_cast<double>(bytes)), "ask for less swap space");
  return {device, bytes};
}

[[nodiscard]] std::vector<kernels::gpu::BlockPair> pairs_of(std::span<const BlockCopy> copies) {
  std::vector<kernels::gpu::BlockPair> pairs;
  for (const BlockCopy& copy : copies) pairs.push_back({copy.source, copy.destination});
  return pairs;
}

}  // namespace

GpuKvStorage::GpuKvStorage(std::shared_ptr<kernels::gpu::Device> device, const ModelShape& model,
                           const KvCacheOptions& options)
    : device_(std::move(device)),
      options_(options),
      num_kv_heads_(model.heads().num_key_value_heads),
      head_dim_(model.heads().head_dim),
      value_dim_(head_dim_),
      owners_(kv_owners(model)) {
  require_equal_heads(model);
  const std::vector<std::string> reasons = clashes(options.kv(), KvFeature::gpu);
  if (!reasons.empty()) throw InputError(reasons.front());
  require_served(model, options);
  if (options.num_blocks < 1) throw InputError("the KV cache needs at least one block");
  if (const Mla* latents = model.kinds.front().mla()) {
    require_latents(*latents, options.dtype);
    num_tensors_ = 1, value_dim_ = latents->kv_lora_rank;
  }
  std::vector<KvPart> parts = parts_of(options);
  const std::size_t num_format_parts = parts.size();
  const std::vector<KvPart> beside = parts_beside_blocks(model.kinds.front(), options);
  parts.insert(parts.end(), beside.begin(), beside.end());
  keeps_beside_ = !beside.empty();
  pools_of_layer_ = parts.size();
  for (int index = 0; index < model.num_layers(); ++index)
    if (model.kv_source(index) == index) add_layer(index, parts, num_format_parts);
  pairs_ = DeviceMemory(device_, kMaxPairs * 2 * sizeof(std::int32_t));
  host_pools_ = make_host_pools(device_, options.num_host_blocks, bytes_per_block());
}

std::vector<KvPart> GpuKvStorage::parts_of(const KvCacheOptions& options) const {
  return kv_layout(options.dtype)
      .parts({.num_kv_heads = num_kv_heads_, .head_dim = head_dim_, .num_tensors = num_tensors_}, options);
}

kernels::KvCacheView GpuKvStorage::view_of(std::span<const std::span<std::byte>> parts,
                                           const KvCacheOptions& options) const {
  return {.k = parts.front().data(),
          .v = parts[num_tensors_ - 1].data(),
          .dtype = options.dtype,
          .num_blocks = options.num_blocks,
          .num_kv_heads = num_kv_heads_,
          .block_size = options.block_size,
          .head_dim = head_dim_,
          .value_dim = value_dim_};
}

void GpuKvStorage::add_layer(int index, std::span<const KvPart> parts, std::size_t num_format_parts) {
  std::vector<std::span<std::byte>> memory;
  for (const KvPart& part : parts) {
    pools_.push_back({DeviceMemory(device_, part.size, OperandRole::kv_read), part.size, part.block_bytes});
    memory.emplace_back(pools_.back().memory.as<std::byte>(), part.size);
  }
  memory.resize(num_format_parts);
  kernels::KvCacheView& view = views_.emplace_back(view_of(memory, options_));
  if (const auto extras = kv_layout(options_.dtype).extras) view.extras = extras(memory, options_, index);
}

std::byte* GpuKvStorage::beside_blocks(int index) const {
  if (!keeps_beside_) return nullptr;
  const auto owner = static_cast<std::size_t>(owners_[static_cast<std::size_t>(index)]);
  return pools_[(owner + 1) * pools_of_layer_ - 1].memory.as<std::byte>();
}

std::size_t GpuKvStorage::bytes_per_block() const {
  std::size_t bytes = 0;
  for (const Pool& pool : pools_) bytes += pool.block_bytes;
  return bytes;
}

// A launch copies its pairs in any order, so a block that one pair writes must not be in another.
void GpuKvStorage::copy_in_order(std::span<const BlockCopy> copies, Unit unit) {
  std::size_t first = 0;
  std::set<BlockId> read, written;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const BlockCopy& copy = copies[i];
    if (written.contains(copy.source) || written.contains(copy.destination) || read.contains(copy.destination) ||
        i - first == kMaxPairs) {
      copy_independent(copies.subspan(first, i - first), unit);
      first = i;
      read.clear();
      written.clear();
    }
    read.insert(copy.source);
    written.insert(copy.destination);
  }
  copy_independent(copies.subspan(first), unit);
}

void GpuKvStorage::copy_blocks(std::span<const BlockCopy> copies) { copy_in_order(copies, Unit::block); }

// What a token has of a head is copied as if it were a block.
void GpuKvStorage::move_slots(std::span<const SlotMove> moves) {
  const auto row_of = [this](std::int64_t slot, int head) {
    return static_cast<BlockId>((slot / options_.block_size * num_kv_heads_ + head) * options_.block_size +
                                slot % options_.block_size);
  };
  if (quantizes_together(options_.dtype))
    throw std::invalid_argument("a " + std::string(name(options_.dtype)) + " cache has no slots of single tokens");
  if (keeps_beside_)
    throw std::invalid_argument("what " + std::string(name(options_.policy)) +
                                " keeps of a block is not of single tokens");
  std::vector<BlockCopy> copies;
  for (const SlotMove& move : moves)
    for (int head = 0; head < num_kv_heads_; ++head)
      copies.push_back({row_of(move.source, head), row_of(move.destination, head)});
  const auto rows = static_cast<std::size_t>(options_.block_size) * static_cast<std::size_t>(num_kv_heads_);
  if (rows * static_cast<std::size_t>(options_.num_blocks) > std::numeric_limits<BlockId>::max())
    throw InputError(
        "trees of drafts move tokens within a KV cache of at most 2^31 rows of heads; give it less memory");
  copy_in_order(copies, Unit::row);
}

void GpuKvStorage::copy_independent(std::span<const BlockCopy> copies, Unit unit) {
  if (copies.empty()) return;
  host_pairs_.clear();
  for (const BlockCopy& copy : copies) host_pairs_.insert(host_pairs_.end(), {copy.source, copy.destination});
  device_->upload(pairs_.as(), host_pairs_.data(), host_pairs_.size() * sizeof(std::int32_t));
  const std::size_t rows = static_cast<std::size_t>(num_kv_heads_) * static_cast<std::size_t>(options_.block_size);
  for (const Pool& pool : pools_)
    if (pool.block_bytes > 0)
      device_->copy_blocks(
          {.source = pool.memory.as(),
           .destination = pool.memory.as(),
           .pairs = pairs_.as<std::int32_t>(),
           .num_pairs = static_cast<int>(copies.size()),
           .block_bytes = static_cast<std::int64_t>(unit == Unit::block ? pool.block_bytes : pool.block_bytes / rows)});
  device_->synchronize();  // host_pairs_ is used again
}

void GpuKvStorage::swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) {
  using kernels::gpu::SwapDirection;
  const std::vector<kernels::gpu::BlockPair> leaving = pairs_of(out), coming = pairs_of(in);
  auto* on_host = host_pools_.as<std::byte>();
  for (const Pool& pool : pools_) {
    const std::size_t bytes = pool.block_bytes;
    kernels::gpu::swap_blocks(*device_, {pool.memory.as(), on_host, leaving, bytes, SwapDirection::to_host});
    kernels::gpu::swap_blocks(*device_, {on_host, pool.memory.as(), coming, bytes, SwapDirection::to_device});
    on_host += bytes * static_cast<std::size_t>(options_.num_host_blocks);
  }
  device_->synchronize();
}

void GpuKvStorage::read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) const {
  std::byte* there = to.data();
  for (const BlockId block : blocks)
    for (const Pool& pool : pools_) {
      device_->download(there, pool.at(block), pool.block_bytes);
      there += pool.block_bytes;
    }
}

void GpuKvStorage::write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from) {
  const std::byte* there = from.data();
  for (const BlockId block : blocks)
    for (const Pool& pool : pools_) {
      device_->upload(pool.at(block), there, pool.block_bytes);
      there += pool.block_bytes;
    }
  device_->synchronize();  // the caller's memory may go
}

// What a format has of a few blocks and a sequence, over and over.
void GpuKvStorage::fill_randomly(std::uint64_t seed) {
  constexpr int kPatternBlocks = 64;
  KvCacheOptions few = options_;
  few.num_blocks = std::min(few.num_blocks, kPatternBlocks), few.max_num_seqs = 1;
  std::vector<std::vector<std::byte>> patterns;
  std::vector<std::span<std::byte>> memory;
  for (const KvPart& part : parts_of(few)) memory.emplace_back(patterns.emplace_back(part.size));
  kv_layout(few.dtype).fill_randomly(view_of(memory, few), memory, seed);
  if (keeps_beside_) patterns.push_back(random_kv_values(Dtype::bf16, seed));
  for (std::size_t i = 0; i < pools_.size(); ++i)
    repeat(*device_, pools_[i].memory.as(), pools_[i].bytes, patterns[i % pools_of_layer_]);
}

}  // namespace dculab::engine
