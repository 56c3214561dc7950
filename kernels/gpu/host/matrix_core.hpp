// Matrix cores on the host: which element of A, B and D each lane holds, and the instruction itself.
//
// V_MFMA_F32_{side}X{side}X{depth}: D = A B + C, of one wave of 64 lanes. A is [side, depth], B [depth, side], C and D
// are [side, side]. Source: "AMD Instinct MI100" and "AMD Instinct MI200 Instruction Set Architecture", matrix
// arithmetic instructions; tests hold the formulas to AMD's Matrix Instruction Calculator.
#pragma once

#include <cstdint>

namespace dculab::kernels::gpu::host {

enum class MatrixValues : std::uint8_t { f16, bf16 };

struct MatrixElement {
  int row = 0, column = 0;

  friend bool operator==(const MatrixElement&, const MatrixElement&) = default;
};

struct MatrixInstruction {
  static constexpr int kLanes = 64;

  int side = 32;  // 32 or 16
  int depth = 8;  // F16, and BF16 of gfx90a: 8 of side 32, 16 of side 16; BF16 of gfx908: half of that
  MatrixValues values = MatrixValues::f16;

  // Of A and of B, two in a register; of C and D, one in a register.
  [[nodiscard]] constexpr int operand_values() const { return side * depth / kLanes; }
  [[nodiscard]] constexpr int sums() const { return side * side / kLanes; }

  // What value `i` of a lane is.
  [[nodiscard]] constexpr MatrixElement of_a(int lane, int i) const {
    return {lane % side, lane / side * operand_values() + i};
  }
  [[nodiscard]] constexpr MatrixElement of_b(int lane, int i) const {
    return {lane / side * operand_values() + i, lane % side};
  }
  [[nodiscard]] constexpr MatrixElement of_d(int lane, int i) const {
    constexpr int kRun = 4;  // neighbouring rows in a lane
    return {i / kRun * kRun * (kLanes / side) + lane / side * kRun + i % kRun, lane % side};
  }
};

// The calling lane's part: `a` and `b` hold its values of A and B, 16 bits each, the first one lowest; sums[i] += what
// D adds to C. All lanes of a wave of 64 must take part. Products and sums are F32, in the order of k; subnormal values
// count, which gfx90a takes for 0.
void multiply_add(const MatrixInstruction& instruction, std::uint64_t a, std::uint64_t b, float* sums);

}  // namespace dculab::kernels::gpu::host
