#include "engine/checkpoint/random_weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "engine/checkpoint/packed_layers.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "kernels/cpu/packed_weights.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kPatternValues = 65521;  // a prime, so that rows of no usual width line up

constexpr double kBiasLimit = 0.1;
constexpr int kFp8BlockShift = 7;  // blocks of 128 x 128, as DeepSeek and Qwen3 have them
constexpr float kLargestFp8 = 448.0F;
constexpr int kPatternRows = 4 * kernels::cpu::PackedLayout::kStripRows;  // of a packed matrix, repeated

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// A tensor in the form it is stored in.
struct StoredSlot {
  TensorSlot slot;
  Dtype dtype = Dtype::f16;
  int group_size = 0;  // packed matrices only

  [[nodiscard]] bool packed() const { return group_size > 0; }
  [[nodiscard]] bool has_scales() const { return dtype == Dtype::fp8_e4m3; }
  [[nodiscard]] std::size_t value_bytes() const { return slot.values() * static_cast<std::size_t>(bits(dtype)) / 8; }
  [[nodiscard]] int column_blocks() const { return blocks_of(slot.columns); }
  [[nodiscard]] std::size_t scales() const {
    return has_scales() ? static_cast<std::size_t>(blocks_of(slot.rows)) * static_cast<std::size_t>(column_blocks())
                        : 0;
  }
  // It begins on a cache line, and so do its scales behind it.
  [[nodiscard]] std::size_t room() const {
    if (packed()) return whole_lines(kernels::cpu::packed_bytes(slot.rows, slot.columns, bits(dtype), group_size));
    return whole_lines(value_bytes()) + whole_lines(scales() * sizeof(float));
  }

 private:
  [[nodiscard]] static int blocks_of(int size) { return ((size - 1) >> kFp8BlockShift) + 1; }
};

// shape.quantization holds for the layers' matrices; a group size of -1 makes each row one group.
StoredSlot stored(const TensorSlot& slot, const ModelWeights& weights) {
  const std::optional<WeightFormat>& format = weights.shape.quantization;
  if (!is_quantized_in(weights.shape, slot)) return {slot, slot.widened ? Dtype::f32 : weights.shape.dtype, 0};
  if (format->dtype == Dtype::fp8_e4m3) return {slot, Dtype::fp8_e4m3, 0};
  const int group_size = format->group_size > 0 ? format->group_size : slot.columns;
  if (group_size % 8 != 0 || slot.columns % group_size != 0)
    throw InputError("random " + std::string(name(format->dtype)) + " weights: " + slot.name + " has " +
                     std::to_string(slot.columns) + " in-features (groups of " + std::to_string(group_size) +
                     " do not divide them, or are not multiples of 8); choose another model");
  return {slot, format->dtype, group_size};
}

std::vector<float> pattern_for(const TensorSlot& slot, std::mt19937_64& random) {
  std::vector<float> values(std::min(slot.values(), kPatternValues), 1.0F);
  if (slot.kind == SlotKind::norm) return values;
  // Uniform in [-limit, limit] has variance limit^2 / 3.
  const double limit = slot.kind == SlotKind::bias ? kBiasLimit : std::sqrt(3.0 / slot.columns);
  for (float& value : values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    value = static_cast<float>((2.0 * unit - 1.0) * limit);
  }
  return values;
}

// The pattern again and again.
void repeat(const std::vector<std::byte>& pattern, std::byte* destination, std::size_t total) {
  for (std::size_t offset = 0; offset < total; offset += pattern.size())
    std::memcpy(destination + offset, pattern.data(), std::min(pattern.size(), total - offset));
}

void fill_plain(const StoredSlot& to, std::byte* destination, std::mt19937_64& random) {
  const TensorSlot& slot = to.slot;
  const std::vector<float> values = pattern_for(slot, random);
  std::vector<std::byte> pattern(values.size() * static_cast<std::size_t>(bits(to.dtype)) / 8);
  narrow(values, to.dtype, pattern.data());
  repeat(pattern, destination, to.value_bytes());
  *slot.view = {destination, to.dtype, slot.rows};
}

// The largest value of all blocks is that of the format, as quantizers make it.
void fill_fp8(const StoredSlot& to, std::byte* destination, std::mt19937_64& random) {
  const TensorSlot& slot = to.slot;
  const float scale = static_cast<float>(std::sqrt(3.0 / slot.columns)) / kLargestFp8;
  std::vector<std::byte> pattern;
  for (const float value : pattern_for(slot, random))
    pattern.push_back(static_cast<std::byte>(kernels::fp8_e4m3_from_f32(value / scale)));
  repeat(pattern, destination, to.value_bytes());
  auto* const scales = reinterpret_cast<float*>(destination + whole_lines(to.value_bytes()));
  std::fill_n(scales, to.scales(), kernels::Fp8Scales::kFactor * scale);
  *slot.view = {destination, to.dtype, slot.rows};
  slot.view->scales = {scales, kFp8BlockShift, kFp8BlockShift, to.column_blocks()};
}

// Uniform integers on both sides of the zero point alike: weights with a mean would turn all tokens in one direction,
// and to the same experts. n such integers have variance (n^2 - 1) / 12.
kernels::QuantizedMatrix packed_pattern(const StoredSlot& from, std::mt19937_64& random) {
  kernels::QuantizedMatrix matrix;
  matrix.rows = std::min(kPatternRows, from.slot.rows), matrix.columns = from.slot.columns;
  matrix.bits = bits(from.dtype), matrix.group_size = from.group_size;
  const int zero = 1 << (matrix.bits - 1), count = 2 * zero - 1;
  matrix.q.resize(static_cast<std::size_t>(matrix.rows) * static_cast<std::size_t>(matrix.columns));
  for (std::uint8_t& q : matrix.q) q = static_cast<std::uint8_t>(1 + (random() >> 11) % static_cast<unsigned>(count));
  const double scale = std::sqrt(12.0 / (static_cast<double>(count) * count - 1.0) / matrix.columns);
  const std::size_t groups = static_cast<std::size_t>(matrix.rows) * static_cast<std::size_t>(matrix.groups());
  matrix.scales.assign(groups, kernels::f32_from_f16(kernels::f16_from_f32(static_cast<float>(scale))));
  matrix.zeros.assign(groups, static_cast<std::uint8_t>(zero));
  return matrix;
}

// Strips stand by themselves: those of a few rows are packed and repeated.
void fill_packed(const StoredSlot& to, std::byte* destination, std::mt19937_64& random) {
  const kernels::QuantizedMatrix pattern = packed_pattern(to, random);
  *to.slot.view = kernels::cpu::pack_weights(pattern, nullptr, destination);
  to.slot.view->rows = to.slot.rows;
  const auto bytes_of = [&](int rows) {
    return kernels::cpu::packed_bytes(rows, pattern.columns, pattern.bits, pattern.group_size);
  };
  const std::size_t step = bytes_of(pattern.rows), total = bytes_of(to.slot.rows);
  for (std::size_t offset = step; offset < total; offset += step)
    std::memcpy(destination + offset, destination, std::min(step, total - offset));
}

void require_supported(const ModelShape& shape) {
  require_tensor_names(shape);
  if (shape.dtype != Dtype::f32 && shape.dtype != Dtype::f16 && shape.dtype != Dtype::bf16)
    throw InputError("random weights are made in f32, f16 or bf16, not " + std::string(name(shape.dtype)));
  if (!shape.quantization) return;
  const Dtype dtype = shape.quantization->dtype;
  if (dtype != Dtype::int4 && dtype != Dtype::int8 && dtype != Dtype::fp8_e4m3)
    throw InputError("random quantized weights are made in int4, int8 or fp8_e4m3, not " + std::string(name(dtype)));
}

}  // namespace

ModelWeights random_weights(const ModelShape& shape, std::uint64_t seed) {
  require_supported(shape);
  constexpr const char* kWhat = "a model with random weights";
  constexpr const char* kAdvice = "choose a smaller shape";
  require_memory(kWhat, weight_footprint(shape, shape.layer_format()), kAdvice);
  ModelWeights weights;
  weights.shape = shape;
  weights.kv_calibration = [shape] { return made_up_calibration(shape); };
  std::vector<StoredSlot> slots;
  std::size_t total = 0;
  for (const TensorSlot& slot : tensor_slots(weights)) {
    slots.push_back(stored(slot, weights));
    total += slots.back().room();
  }
  require_memory(kWhat, Bytes(static_cast<double>(total)), kAdvice);  // packing pads a little
  auto memory = std::make_shared<const AnonymousMemory>(total);
  std::mt19937_64 random(seed);
  std::byte* next = memory->data();
  for (const StoredSlot& slot : slots) {
    (slot.packed() ? fill_packed : slot.has_scales() ? fill_fp8 : fill_plain)(slot, next, random);
    next += slot.room();
  }
  weights.memory.push_back(std::move(memory));
  tie_head(weights);
  return weights;
}

}  // namespace dculab::engine
