#include "engine/kv/kv_storage.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "model/kv/kv_bytes.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kAlignment = 64;  // of each part: a cache line

std::size_t rounded_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void require_room(const ModelShape& model, const KvCacheOptions& options) {
  Bytes block = kv_bytes_per_token(model, options.dtype) * options.block_size;
  block += kv_bytes_beside_block(model, options.policy);
  const Bytes blocks = block * (static_cast<double>(options.num_blocks) + options.num_host_blocks);
  std::string what = "a KV cache of " + std::to_string(options.num_blocks) + " blocks of " +
                     std::to_string(options.block_size) + " tokens";
  if (const KvLayout& layout = kv_layout(options.dtype); layout.what_beside != nullptr)
    what += layout.what_beside(options);
  if (options.num_host_blocks > 0) what += " and " + std::to_string(options.num_host_blocks) + " blocks for swapping";
  const Bytes beside = kv_residual_bytes(model, options.dtype, options.residual_tokens) * options.max_num_seqs;
  require_memory(what.c_str(), blocks + beside,
                 options.num_host_blocks > 0
                     ? "ask for fewer tokens, fewer sequences, less swap space or a smaller kv_cache_dtype"
                     : "ask for fewer tokens, fewer sequences or a smaller kv_cache_dtype");
}

}  // namespace

std::vector<int> kv_owners(const ModelShape& model) {
  std::vector<int> owners;
  int count = 0;
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    const int source = model.kv_source(layer);
    owners.push_back(source == layer ? count++ : owners[static_cast<std::size_t>(source)]);
  }
  return owners;
}

KvStorage::KvStorage(const ModelShape& model, const KvCacheOptions& options)
    : options_(options), layout_(kv_layout(options.dtype)), owners_(kv_owners(model)) {
  require_served(model, options);
  if (options.num_blocks < 1) throw InputError("the KV cache needs at least one block");
  require_room(model, options);
  lay_out(model);
  memory_ = std::make_shared<AnonymousMemory>(bytes());
  host_memory_ =
      std::make_shared<AnonymousMemory>(bytes_per_block() * static_cast<std::size_t>(options.num_host_blocks));
  take_memory(model.has_latents());
}

KvStorage::KvStorage(const ModelShape& model, const KvCacheOptions& options, const KvStorage& shared)
    : options_(options), layout_(shared.layout_), owners_(kv_owners(model)) {
  require_served(model, options_);
  const std::vector<std::string> reasons = clashes(options_.kv(), KvFeature::groups_by_load);
  if (!reasons.empty()) throw InputError(reasons.front());
  lay_out(model);
  if (bytes() != shared.bytes() || bytes_per_block() != shared.bytes_per_block())
    throw InputError("KV blocks of " + model.name + " with " + std::to_string(options.block_size) +
                     " tokens are not those of the model that it shares them with");
  memory_ = shared.memory_, host_memory_ = shared.host_memory_;
  take_memory(model.has_latents());
}

void KvStorage::lay_out(const ModelShape& model) {
  const Mla* const latents = model.kinds.front().mla();
  const int head_dim = model.heads().head_dim;
  for (int index = 0; index < model.num_layers(); ++index) {
    if (model.kv_source(index) != index) continue;
    const KvLayerSize size{.num_kv_heads = model.layer(index).cached_heads()->num_key_value_heads,
                           .head_dim = head_dim,
                           .num_tensors = latents != nullptr ? 1U : 2U};
    layers_.push_back({.index = index,
                       .parts = layout_.parts(size, options_),
                       .view = {.dtype = options_.dtype,
                                .num_blocks = options_.num_blocks,
                                .num_kv_heads = size.num_kv_heads,
                                .block_size = options_.block_size,
                                .head_dim = head_dim,
                                .value_dim = latents != nullptr ? latents->kv_lora_rank : head_dim}});
    Layer& layer = layers_.back();
    layer.num_format_parts = layer.parts.size();
    std::ranges::copy(parts_beside_blocks(model.layer(index), options_), std::back_inserter(layer.parts));
  }
}

std::size_t KvStorage::bytes() const {
  std::size_t bytes = 0;
  for (const Layer& layer : layers_)
    for (const KvPart& part : layer.parts) bytes += rounded_up(part.size);
  return bytes;
}

void KvStorage::take_memory(bool has_latents) {
  std::byte* place = memory_->data();
  for (Layer& layer : layers_) {
    for (const KvPart& part : layer.parts) layer.memory.emplace_back(place, part.size), place += rounded_up(part.size);
    layer.view.k = layer.memory.front().data();
    layer.view.v = layer.memory[has_latents ? 0 : 1].data();
    if (layout_.extras != nullptr) layer.view.extras = layout_.extras(layer.format_memory(), options_, layer.index);
  }
}

std::size_t KvStorage::bytes_per_block() const {
  std::size_t bytes = 0;
  for (const Layer& layer : layers_)
    for (const KvPart& part : layer.parts) bytes += part.block_bytes;
  return bytes;
}

std::byte* KvStorage::beside_blocks(int index) const {
  const Layer& layer = layers_[static_cast<std::size_t>(owners_[static_cast<std::size_t>(index)])];
  return layer.keeps_beside() ? layer.memory.back().data() : nullptr;
}

void KvStorage::copy_blocks(std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies)
    for (const Layer& layer : layers_)
      for (std::size_t part = 0; part < layer.parts.size(); ++part) {
        const std::size_t bytes = layer.parts[part].block_bytes;
        std::byte* const blocks = layer.memory[part].data();
        if (bytes != 0)
          std::memcpy(blocks + static_cast<std::size_t>(copy.destination) * bytes,
                      blocks + static_cast<std::size_t>(copy.source) * bytes, bytes);
      }
}

void KvStorage::move_slots(std::span<const SlotMove> moves) {
  if (quantizes_together(options_.dtype))
    throw std::invalid_argument("a " + std::string(name(options_.dtype)) + " cache has no slots of single tokens");
  if (layers_.front().keeps_beside())
    throw std::invalid_argument("what " + std::string(name(options_.policy)) +
                                " keeps of a block is not of single tokens");
  for (const SlotMove& move : moves)
    for (const Layer& layer : layers_)
      for (std::size_t part = 0; part < layer.parts.size(); ++part)
        if (layer.parts[part].block_bytes != 0) move_slot(layer, part, move);
}

// A block of a part is [heads, block_size], of equally many bytes each.
void KvStorage::move_slot(const Layer& layer, std::size_t part, const SlotMove& move) {
  const auto block_size = static_cast<std::size_t>(options_.block_size);
  const int heads = layer.parts[part].heads;
  const std::size_t block_bytes = layer.parts[part].block_bytes;
  const std::size_t row = block_bytes / static_cast<std::size_t>(heads);
  const std::size_t bytes = row / block_size;
  const auto place = [&](std::int64_t slot) {
    const auto index = static_cast<std::size_t>(slot);
    return layer.memory[part].data() + index / block_size * block_bytes + index % block_size * bytes;
  };
  for (int head = 0; head < heads; ++head) {
    const std::size_t offset = static_cast<std::size_t>(head) * row;
    std::memmove(place(move.destination) + offset, place(move.source) + offset, bytes);
  }
}

template <class Move>
void KvStorage::for_each_piece(BlockId block, Move&& move) const {
  for (const Layer& layer : layers_)
    for (std::size_t part = 0; part < layer.parts.size(); ++part) {
      const std::size_t bytes = layer.parts[part].block_bytes;
      move(layer.memory[part].data() + bytes * static_cast<std::size_t>(block), bytes);
    }
}

void KvStorage::swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) {
  const std::size_t bytes = bytes_per_block();
  const auto on_host = [&](BlockId block) {
    return std::span(host_memory_->data() + bytes * static_cast<std::size_t>(block), bytes);
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
  for (const Layer& layer : layers_) {
    layout_.fill_randomly(layer.view, layer.format_memory(), seed);
    if (layer.keeps_beside()) engine::fill_randomly(layer.memory.back(), Dtype::bf16, seed);
  }
}

}  // namespace dculab::engine
