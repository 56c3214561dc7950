#include "engine/probe/probe_weights.hpp"

#include <cstdint>
#include <cstring>

#include "kernels/cpu/packed_weights.hpp"
#include "kernels/number_format.hpp"
#include "kernels/quantized_matrix.hpp"

namespace dculab::engine {
namespace {

constexpr int kGroup = 128;        // of int4
constexpr int kFp8BlockShift = 7;  // blocks of 128 x 128

}  // namespace

ProbeWeights::ProbeWeights(Dtype dtype, int rows, int columns) {
  if (bits(dtype) >= 16)
    fill_floats(dtype, rows, columns);
  else if (dtype == Dtype::fp8_e4m3)
    fill_fp8(rows, columns);
  else
    fill_integers(dtype, rows, columns);
}

unsigned ProbeWeights::random() {
  state_ = state_ * 1664525U + 1013904223U;
  return state_ >> 16;
}

std::byte* ProbeWeights::allocate(std::size_t bytes) {
  size_ = bytes;
  memory_.resize(bytes + 64);
  return memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
}

// In [1/64, 1/32): no denormals.
void ProbeWeights::fill_floats(Dtype dtype, int rows, int columns) {
  const std::size_t values = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
  std::byte* const data = allocate(values * size);
  for (std::size_t i = 0; i < values; ++i) {
    const float value = (1.0F + static_cast<float>(random() % 1024U) / 1024.0F) / 64.0F;
    const std::uint16_t half = dtype == Dtype::f16 ? kernels::f16_from_f32(value) : kernels::bf16_from_f32(value);
    if (dtype == Dtype::f32)
      std::memcpy(data + i * size, &value, size);
    else
      std::memcpy(data + i * size, &half, size);
  }
  view_ = {data, dtype, rows};
}

// Any values but NaN and subnormals.
void ProbeWeights::fill_fp8(int rows, int columns) {
  constexpr unsigned kSmallestNormal = 0x08, kNormals = 0x77;
  const std::size_t values = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  std::byte* const data = allocate(values);
  for (std::size_t i = 0; i < values; ++i) data[i] = static_cast<std::byte>(kSmallestNormal + random() % kNormals);
  const int row_blocks = ((rows - 1) >> kFp8BlockShift) + 1, column_blocks = ((columns - 1) >> kFp8BlockShift) + 1;
  scales_.assign(static_cast<std::size_t>(row_blocks) * static_cast<std::size_t>(column_blocks), 0x1p-13F);
  view_ = {data, Dtype::fp8_e4m3, rows};
  view_.scales = {scales_.data(), kFp8BlockShift, kFp8BlockShift, column_blocks};
}

void ProbeWeights::fill_integers(Dtype dtype, int rows, int columns) {
  kernels::QuantizedMatrix matrix;
  matrix.rows = rows, matrix.columns = columns, matrix.bits = bits(dtype);
  matrix.group_size = dtype == Dtype::int4 ? kGroup : columns;
  const unsigned levels = 1U << static_cast<unsigned>(matrix.bits);
  matrix.q.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (std::uint8_t& q : matrix.q) q = static_cast<std::uint8_t>(random() % levels);
  const std::size_t scales = static_cast<std::size_t>(rows) * static_cast<std::size_t>(matrix.groups());
  matrix.scales.assign(scales, 0x1p-8F);
  matrix.zeros.assign(scales, static_cast<std::uint8_t>(levels / 2));
  std::byte* const data = allocate(kernels::cpu::packed_bytes(rows, columns, matrix.bits, matrix.group_size));
  view_ = kernels::cpu::pack_weights(matrix, nullptr, data);
}

}  // namespace dculab::engine
