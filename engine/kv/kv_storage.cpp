#include "engine/kv/kv_storage.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/kv/random_values.hpp"
#include "kernels/kv/kivi.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kAlignment = 64;  // of each part: a cache line

std::size_t rounded_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void require_supported(const ModelShape& model, const KvCacheOptions& options) {
  if (bits(options.dtype) < 8 && !kernels::is_kivi(options.dtype))
    throw InputError("kv_cache_dtype " + std::string(name(options.dtype)) +
                     " is not supported on the CPU; use f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, kivi4 or kivi2");
  kernels::is_kivi(options.dtype) ? require_equal_heads(model) : require_equal_head_dims(model);
  const auto has_own_kv = [](const LayerKind& kind) { return kind.has_kv_heads() && !kind.gqa().shares_kv; };
  if (kernels::is_kivi(options.dtype) && !std::ranges::all_of(model.kinds, has_own_kv))
    throw InputError("kv_cache_dtype " + std::string(name(options.dtype)) + " cannot serve " + model.name +
                     ": it needs K and V in every layer; use int8 or fp8_e4m3");
  if (kernels::is_kivi(options.dtype) && model.heads().head_dim % kernels::kKiviGroup != 0)
    throw InputError("kv_cache_dtype " + std::string(name(options.dtype)) +
                     " needs a head_dim that is a multiple of 32, not " + std::to_string(model.heads().head_dim) +
                     "; use int8 or fp8_e4m3");
  if (options.num_blocks < 1) throw InputError("the KV cache needs at least one block");
}

Bytes residual_bytes(const ModelShape& model, const KvCacheOptions& options) {
  return kv_residual_bytes(model, options.dtype, options.residual_tokens) * options.max_num_seqs;
}

void require_room(const ModelShape& model, const KvCacheOptions& options) {
  const Bytes blocks = kv_block_bytes(model, options.block_size, options.dtype) *
                       (static_cast<double>(options.num_blocks) + options.num_host_blocks);
  std::string what = "a KV cache of " + std::to_string(options.num_blocks) + " blocks of " +
                     std::to_string(options.block_size) + " tokens";
  if (kernels::is_kivi(options.dtype))
    what += " and " + std::to_string(options.residual_tokens) + " tokens in F16 for each of " +
            std::to_string(options.max_num_seqs) + " sequences";
  if (options.num_host_blocks > 0) what += " and " + std::to_string(options.num_host_blocks) + " blocks for swapping";
  require_memory(what.c_str(), blocks + residual_bytes(model, options),
                 options.num_host_blocks > 0
                     ? "ask for fewer tokens, fewer sequences, less swap space or a smaller kv_cache_dtype"
                     : "ask for fewer tokens, fewer sequences or a smaller kv_cache_dtype");
}

// Repeats `pattern` over the memory.
void repeat(const std::vector<std::byte>& pattern, std::byte* to, std::size_t size) {
  for (std::size_t offset = 0; offset < size; offset += pattern.size())
    std::memcpy(to + offset, pattern.data(), std::min(pattern.size(), size - offset));
}

}  // namespace

void require_equal_heads(const ModelShape& model) {
  for (const LayerKind& kind : model.kinds)
    if (kind.cached_heads() != model.heads())
      throw InputError("the KV cache of " + model.name +
                       " would have layers of different heads, which is not supported");
}

void require_equal_head_dims(const ModelShape& model) {
  for (const LayerKind& kind : model.kinds) {
    const auto heads = kind.cached_heads();
    if (!heads || heads->head_dim != model.heads().head_dim || kind.has_kv_heads() != model.kinds[0].has_kv_heads())
      throw InputError("the KV cache of " + model.name +
                       " would have layers of different heads, which is not supported");
  }
}

std::vector<int> kv_owners(const ModelShape& model) {
  std::vector<int> owners;
  int count = 0;
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    const int source = model.kv_source(layer);
    owners.push_back(source == layer ? count++ : owners[static_cast<std::size_t>(source)]);
  }
  return owners;
}

Bytes kv_block_bytes(const ModelShape& model, int block_size, Dtype dtype) {
  return kv_bytes_per_token(model, dtype) * block_size;
}

KvStorage::KvStorage(const ModelShape& model, const KvCacheOptions& options)
    : options_(options), head_dim_(model.heads().head_dim), value_dim_(head_dim_) {
  require_supported(model, options);
  require_room(model, options);
  if (const Mla* latents = model.kinds.front().mla()) is_latent_ = true, value_dim_ = latents->kv_lora_rank;
  owners_ = kv_owners(model), num_owners_ = std::ranges::max(owners_) + 1;
  std::size_t bytes = 0;
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    if (model.kv_source(layer) != layer) continue;
    layouts_.push_back(layout_of(model, model.layer(layer), bytes));
    const Part& last = layouts_.back().parts.back();
    bytes += rounded_up(last.offset + last.size);
  }
  memory_ = AnonymousMemory(bytes);
  host_memory_ = AnonymousMemory(bytes_per_block() * static_cast<std::size_t>(options.num_host_blocks));
}

KvStorage::Layout KvStorage::layout_of(const ModelShape& model, const LayerKind& kind, std::size_t offset) const {
  Layout layout{.num_kv_heads = kind.cached_heads()->num_key_value_heads, .offset = offset};
  auto add_part = [&layout, end = std::size_t{0}](std::size_t block_bytes, std::size_t size) mutable {
    layout.parts.push_back({.block_bytes = block_bytes, .offset = end, .size = size});
    end += rounded_up(size);
  };
  const auto heads = static_cast<std::size_t>(options_.block_size) * static_cast<std::size_t>(layout.num_kv_heads);
  const auto num_blocks = static_cast<std::size_t>(options_.num_blocks);
  const bool is_int8 = options_.dtype == Dtype::int8, is_kivi = kernels::is_kivi(options_.dtype);
  const double values = static_cast<double>(heads) * head_dim_;
  const Bytes block = is_kivi ? kv_storage(options_.dtype, values, head_dim_) : storage(options_.dtype, values);
  const auto block_bytes = static_cast<std::size_t>(block.value());
  for (std::size_t tensor = 0; tensor < num_tensors(); ++tensor) add_part(block_bytes, block_bytes * num_blocks);
  for (std::size_t tensor = 0; tensor < num_tensors() && is_int8; ++tensor)
    add_part(heads * sizeof(float), heads * sizeof(float) * num_blocks);
  const Bytes residual = residual_bytes(model, options_) / (2.0 * num_owners_);
  for (int tensor = 0; tensor < 2 && is_kivi; ++tensor) add_part(0, static_cast<std::size_t>(residual.value()));
  return layout;
}

std::byte* KvStorage::at(int owner, std::size_t part) const {
  return memory_.data() + layout(owner).offset + layout(owner).parts[part].offset;
}

std::size_t KvStorage::bytes_per_block() const {
  std::size_t bytes = 0;
  for (const Layout& each : layouts_)
    for (const Part& part : each.parts) bytes += part.block_bytes;
  return bytes;
}

kernels::KvCacheView KvStorage::layer(int index) const { return view_of(owners_[static_cast<std::size_t>(index)]); }

kernels::KvCacheView KvStorage::view_of(int owner) const {
  const std::size_t of_v = num_tensors() - 1;  // latents are K and V
  kernels::KvCacheView view{.k = at(owner, 0),
                            .v = at(owner, of_v),
                            .dtype = options_.dtype,
                            .num_blocks = options_.num_blocks,
                            .num_kv_heads = layout(owner).num_kv_heads,
                            .block_size = options_.block_size,
                            .head_dim = head_dim_,
                            .value_dim = value_dim_};
  if (options_.dtype == Dtype::int8) {
    view.k_scales = reinterpret_cast<float*>(at(owner, num_tensors()));
    view.v_scales = reinterpret_cast<float*>(at(owner, num_tensors() + of_v));
  } else if (kernels::is_kivi(options_.dtype)) {
    view.residual = {reinterpret_cast<std::uint16_t*>(at(owner, 2)), reinterpret_cast<std::uint16_t*>(at(owner, 3)),
                     options_.residual_tokens};
  }
  return view;
}

void KvStorage::copy_blocks(std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies)
    for (int owner = 0; owner < num_owners_; ++owner)
      for (std::size_t part = 0; part < layout(owner).parts.size(); ++part) {
        const std::size_t bytes = layout(owner).parts[part].block_bytes;
        if (bytes != 0)
          std::memcpy(at(owner, part) + static_cast<std::size_t>(copy.destination) * bytes,
                      at(owner, part) + static_cast<std::size_t>(copy.source) * bytes, bytes);
      }
}

void KvStorage::move_slots(std::span<const SlotMove> moves) {
  if (kernels::is_kivi(options_.dtype)) throw std::invalid_argument("a KIVI cache has no slots of single tokens");
  for (const SlotMove& move : moves)
    for (int owner = 0; owner < num_owners_; ++owner)
      for (std::size_t part = 0; part < layout(owner).parts.size(); ++part) move_slot(owner, part, move);
}

// A block of a part is [KV heads of the layer, block_size], of equally many bytes each.
void KvStorage::move_slot(int owner, std::size_t part, const SlotMove& move) {
  const auto block_size = static_cast<std::size_t>(options_.block_size);
  const int heads = layout(owner).num_kv_heads;
  const std::size_t block_bytes = layout(owner).parts[part].block_bytes;
  const std::size_t row = block_bytes / static_cast<std::size_t>(heads);
  const std::size_t bytes = row / block_size;
  const auto place = [&](std::int64_t slot) {
    const auto index = static_cast<std::size_t>(slot);
    return at(owner, part) + index / block_size * block_bytes + index % block_size * bytes;
  };
  for (int head = 0; head < heads; ++head) {
    const std::size_t offset = static_cast<std::size_t>(head) * row;
    std::memmove(place(move.destination) + offset, place(move.source) + offset, bytes);
  }
}

template <class Move>
void KvStorage::for_each_piece(BlockId block, Move&& move) const {
  for (int owner = 0; owner < num_owners_; ++owner)
    for (std::size_t part = 0; part < layout(owner).parts.size(); ++part) {
      const std::size_t bytes = layout(owner).parts[part].block_bytes;
      move(at(owner, part) + bytes * static_cast<std::size_t>(block), bytes);
    }
}

void KvStorage::swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) {
  const std::size_t bytes = bytes_per_block();
  const auto on_host = [&](BlockId block) {
    return std::span(host_memory_.data() + bytes * static_cast<std::size_t>(block), bytes);
  };
  for (const auto& [source, destination] : out) read_blocks({&source, 1}, on_host(destination));
  for (const auto& [source, destination] : in) write_blocks({&destination, 1}, on_host(source));
}

void KvStorage::read_blocks(std::span<const BlockId> blocks, std::span<std::byte> to) const {
  std::byte* there = to.data();
  for (const BlockId block : blocks)
    for_each_piece(block, [&there](const std::byte* here, std::size_t bytes) {
      std::memcpy(there, here, bytes);
      there += bytes;
    });
}

void KvStorage::write_blocks(std::span<const BlockId> blocks, std::span<const std::byte> from) {
  const std::byte* there = from.data();
  for (const BlockId block : blocks)
    for_each_piece(block, [&there](std::byte* here, std::size_t bytes) {
      std::memcpy(here, there, bytes);
      there += bytes;
    });
}

void KvStorage::fill_randomly(std::uint64_t seed) {
  const bool is_kivi = kernels::is_kivi(options_.dtype);
  for (int owner = 0; owner < num_owners_; ++owner)
    for (std::size_t part = 0; part < num_tensors(); ++part)
      fill_part(owner, part, is_kivi ? Dtype::int8 : options_.dtype, seed);
  for (int owner = 0; owner < num_owners_; ++owner) {
    if (options_.dtype == Dtype::int8)
      for (std::size_t part = num_tensors(); part < layout(owner).parts.size(); ++part)
        std::fill_n(reinterpret_cast<float*>(at(owner, part)), layout(owner).parts[part].size / sizeof(float),
                    1.0F / 127);
    if (!is_kivi) continue;
    fill_kivi_records(owner);
    for (const std::size_t part : {2, 3}) fill_part(owner, part, Dtype::f16, seed);
  }
}

void KvStorage::fill_part(int owner, std::size_t part, Dtype dtype, std::uint64_t seed) {
  repeat(random_kv_values(dtype, seed), at(owner, part), layout(owner).parts[part].size);
}

// Makes random codes stand for values from -1 to 1.
void KvStorage::fill_kivi_records(int owner) {
  const kernels::KvCacheView view = view_of(owner);
  const kernels::KiviLayout layout(view);
  const auto scale = kernels::f16_from_f32(2.0F / static_cast<float>((1 << layout.code_bits) - 1));
  for (void* pool : {view.k, view.v})
    for (std::ptrdiff_t record = 0; record < std::ptrdiff_t{view.num_blocks} * view.num_kv_heads; ++record) {
      const kernels::KiviUnit first = layout.unit(pool, record, 0);
      std::fill_n(first.scale, layout.units, scale);
      std::fill_n(first.zero, layout.units, kernels::f16_from_f32(-1.0F));
    }
}

}  // namespace dculab::engine
