#include "kernels/gpu/host/matrix_core.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "kernels/gpu/host/workgroup.hpp"
#include "kernels/number_format.hpp"

namespace dculab::kernels::gpu::host {
namespace {

constexpr int kLanes = MatrixInstruction::kLanes;
constexpr int kMostDepth = 16;

using WaveBits = std::array<std::uint64_t, kLanes>;

[[nodiscard]] float number(MatrixValues values, std::uint64_t bits, int i) {
  const auto stored = static_cast<std::uint16_t>(bits >> (16 * i));
  if (values == MatrixValues::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16);
  return f32_from_f16(stored);
}

// Row `row` of A, or column `row` of B: they lie in the same lanes.
void read_row(const MatrixInstruction& instruction, const WaveBits& wave, int row, std::array<float, kMostDepth>& out) {
  for (int lane = row; lane < kLanes; lane += instruction.side)
    for (int i = 0; i < instruction.operand_values(); ++i)
      out[static_cast<std::size_t>(instruction.of_a(lane, i).column)] =
          number(instruction.values, wave[static_cast<std::size_t>(lane)], i);
}

}  // namespace

[[gnu::noinline]] void multiply_add(const MatrixInstruction& instruction, std::uint64_t a, std::uint64_t b,
                                    float* sums) {
  WaveBits of_a, of_b;
  exchange_all(a, of_a.data());
  exchange_all(b, of_b.data());
  const int lane = lane_index().thread % kLanes;
  std::array<float, kMostDepth> row{}, column{};
  read_row(instruction, of_b, lane % instruction.side, column);
  for (int i = 0; i < instruction.sums(); ++i) {
    read_row(instruction, of_a, instruction.of_d(lane, i).row, row);
    for (int k = 0; k < instruction.depth; ++k)
      sums[i] = std::fma(row[static_cast<std::size_t>(k)], column[static_cast<std::size_t>(k)], sums[i]);
  }
}

}  // namespace dculab::kernels::gpu::host
