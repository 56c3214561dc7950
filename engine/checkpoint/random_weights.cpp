#include "engine/checkpoint/random_weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/memory/anonymous_memory.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kPatternValues = 65521;  // a prime, so that rows of no usual width line up

// A tensor begins on a cache line.
std::size_t room_for(const WeightSlot& slot, Dtype dtype) {
  const std::size_t bytes = slot.values() * static_cast<std::size_t>(bits(dtype)) / 8;
  return (bytes + 63) / 64 * 64;
}

std::vector<float> pattern_for(const WeightSlot& slot, std::mt19937_64& random) {
  std::vector<float> values(std::min(slot.values(), kPatternValues), 1.0F);
  if (slot.columns == 0) return values;  // a norm
  // Uniform in [-limit, limit] has variance limit^2 / 3.
  const double limit = std::sqrt(3.0 / slot.columns);
  for (float& value : values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    value = static_cast<float>((2.0 * unit - 1.0) * limit);
  }
  return values;
}

void fill(const WeightSlot& slot, Dtype dtype, std::byte* destination, std::mt19937_64& random) {
  const std::vector<float> values = pattern_for(slot, random);
  const std::size_t value_bytes = static_cast<std::size_t>(bits(dtype)) / 8;
  std::vector<std::byte> pattern(values.size() * value_bytes);
  narrow(values, dtype, pattern.data());
  const std::size_t total = slot.values() * value_bytes;
  for (std::size_t offset = 0; offset < total; offset += pattern.size())
    std::memcpy(destination + offset, pattern.data(), std::min(pattern.size(), total - offset));
  *slot.view = {destination, dtype, slot.rows};
}

}  // namespace

LlamaWeights random_weights(const ModelShape& shape, std::uint64_t seed) {
  if (shape.dtype != Dtype::f32 && shape.dtype != Dtype::f16 && shape.dtype != Dtype::bf16)
    throw InputError("random weights are made in f32, f16 or bf16, not " + std::string(name(shape.dtype)));
  LlamaWeights weights;
  weights.shape = shape;
  const std::vector<WeightSlot> slots = weight_slots(weights);
  std::size_t total = 0;
  for (const WeightSlot& slot : slots) total += room_for(slot, shape.dtype);
  require_memory("a model with random weights", Bytes(static_cast<double>(total)), "choose a smaller shape");
  auto memory = std::make_shared<const AnonymousMemory>(total);
  std::mt19937_64 random(seed);
  std::byte* next = memory->data();
  for (const WeightSlot& slot : slots) {
    fill(slot, shape.dtype, next, random);
    next += room_for(slot, shape.dtype);
  }
  weights.memory.push_back(std::move(memory));
  tie_head(weights);
  return weights;
}

}  // namespace dculab::engine
