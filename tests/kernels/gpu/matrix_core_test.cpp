// Is the matrix instruction of the host build AMD's, in which lane holds what and in what it computes?
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "kernels/gpu/matmul/matrix_tile.hpp"
#include "kernels/gpu/matrix_core.hpp"
#include "kernels/number_format.hpp"
#include "tests/kernels/gpu/host_options.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu::host_build {
namespace {

using host::MatrixElement;
using host::MatrixInstruction;
using host::MatrixValues;

const std::map<std::string, MatrixInstruction> kInstructions{
    {"32X32X8F16", {32, 8, MatrixValues::f16}},      {"16X16X16F16", {16, 16, MatrixValues::f16}},
    {"32X32X4BF16", {32, 4, MatrixValues::bf16}},    {"16X16X8BF16", {16, 8, MatrixValues::bf16}},
    {"32X32X8BF16_1K", {32, 8, MatrixValues::bf16}}, {"16X16X16BF16_1K", {16, 16, MatrixValues::bf16}}};

MatrixElement element_of(const MatrixInstruction& instruction, char matrix, int lane, int i) {
  if (matrix == 'A') return instruction.of_a(lane, i);
  return matrix == 'B' ? instruction.of_b(lane, i) : instruction.of_d(lane, i);
}

// A row-major matrix of 16-bit values, and the same as floats.
struct StoredMatrix {
  StoredMatrix(TensorSource& source, int rows, int columns_of_row, MatrixValues values) : columns(columns_of_row) {
    for (const float value : source.floats(static_cast<std::size_t>(rows * columns))) {
      bits.push_back(values == MatrixValues::f16
                         ? f16_from_f32(value)
                         : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      numbers.push_back(values == MatrixValues::f16
                            ? f32_from_f16(bits.back())
                            : std::bit_cast<float>(static_cast<std::uint32_t>(bits.back()) << 16));
    }
  }
  [[nodiscard]] std::size_t index(MatrixElement at) const {
    return static_cast<std::size_t>(at.row * columns + at.column);
  }

  int columns;
  std::vector<std::uint16_t> bits;
  std::vector<float> numbers;
};

template <typename Place>
std::uint64_t operand(const StoredMatrix& matrix, int values, Place place) {
  std::uint64_t operand = 0;
  for (int i = 0; i < values; ++i) operand |= std::uint64_t{matrix.bits[matrix.index(place(i))]} << (16 * i);
  return operand;
}

double exact(const StoredMatrix& a, const StoredMatrix& b, MatrixElement at, int depth) {
  double sum = 0;
  for (int k = 0; k < depth; ++k) sum += double{a.numbers[a.index({at.row, k})]} * b.numbers[b.index({k, at.column})];
  return sum;
}

}  // namespace

TEST_CASE("lanes hold the matrices of MFMA where AMD's calculator says", "[gpu][matrix_core]") {
  std::ifstream file(std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/kernels/matrix_cores.txt");
  std::map<std::string, int> elements;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    char matrix = 0, colon = 0, dot = 0;
    int row = -1, lane = -1, value = -1;
    REQUIRE(words >> name >> matrix >> row >> colon);
    const MatrixInstruction& instruction = kInstructions.at(name);
    for (int column = 0; words >> lane >> dot >> value; ++column) {
      CAPTURE(line, column);
      REQUIRE(element_of(instruction, matrix, lane, value) == MatrixElement{row, column});
      ++elements[name + matrix];
    }
  }
  REQUIRE(elements.size() == 3 * kInstructions.size());
  for (const auto& [name, instruction] : kInstructions) {
    CHECK(elements[name + 'A'] == instruction.side * instruction.depth);
    CHECK(elements[name + 'B'] == instruction.side * instruction.depth);
    CHECK(elements[name + 'D'] == instruction.side * instruction.side);
  }
}

TEST_CASE("MFMA of the host build is the product of the matrices that the lanes hold", "[gpu][matrix_core]") {
  for (const auto& [name, instruction] : kInstructions) {
    CAPTURE(name);
    const int side = instruction.side, depth = instruction.depth;
    TensorSource source(7);
    const StoredMatrix a(source, side, depth, instruction.values), b(source, depth, side, instruction.values);
    const std::vector<float> c = source.floats(static_cast<std::size_t>(side * side));
    for (const host::LaneOrder order : kLaneOrders) {
      std::vector<float> d(c.size(), NAN);
      host::run_grid({.threads = 128}, {.order = order}, [&, each = instruction] {
        const int lane = thread_index() % kMatrixLanes;
        std::array<float, 16> sums{};
        const auto place = [&](int i) {
          const MatrixElement at = each.of_d(lane, i);
          return static_cast<std::size_t>(at.row * side + at.column);
        };
        for (int i = 0; i < each.sums(); ++i) sums[static_cast<std::size_t>(i)] = c[place(i)];
        host::multiply_add(each, operand(a, each.operand_values(), [&](int i) { return each.of_a(lane, i); }),
                           operand(b, each.operand_values(), [&](int i) { return each.of_b(lane, i); }), sums.data());
        for (int i = 0; i < each.sums(); ++i) d[place(i)] = sums[static_cast<std::size_t>(i)];
      });
      for (int row = 0; row < side; ++row)
        for (int column = 0; column < side; ++column) {
          const auto at = static_cast<std::size_t>(row * side + column);
          const double expected = c[at] + exact(a, b, {row, column}, depth);
          REQUIRE(std::abs(d[at] - expected) <= sum_tolerance(depth + 1, 1.0));
        }
    }
  }
}

namespace {

// What kernels are written against: rows and places of operands, runs of sums; of gfx908, pairs of instructions of half
// the depth, whose places along k are others.
template <int kSide, typename T>
void check_wrapper(MatrixValues values) {
  constexpr int kDepth = kMatrixDepth<kSide>;
  TensorSource source(8);
  const StoredMatrix a(source, kSide, kDepth, values), b(source, kDepth, kSide, values);
  std::vector<float> d(kSide * kSide, NAN), in_halves = d;
  host::run_grid({.threads = kMatrixLanes}, {}, [&] {
    const int row = operand_row<kSide>(), place = operand_place<kSide>();
    const auto left = std::bit_cast<MatrixOperand>(operand(a, 4, [&](int i) { return MatrixElement{row, place + i}; }));
    const auto right = std::bit_cast<MatrixOperand>(operand(b, 4, [&](int i) {
      return MatrixElement{place + i, row};
    }));
    auto sums = no_sums<kSide>(), halves = sums;
    multiply_matrices<kSide, T>(left, right, sums);
    const MatrixInstruction of_half{kSide, kDepth / 2, values};
    for (int i = 0; i < 2; ++i) host::multiply_add(of_half, left.words[i], right.words[i], halves.values);
    for (int run = 0; run < kSumRuns<kSide>; ++run)
      for (int i = 0; i < 4; ++i) {
        const auto at = static_cast<std::size_t>((sum_row<kSide>(run) + i) * kSide + row);
        d[at] = sums[4 * run + i];
        in_halves[at] = halves[4 * run + i];
      }
  });
  for (int row = 0; row < kSide; ++row)
    for (int column = 0; column < kSide; ++column) {
      const auto at = static_cast<std::size_t>(row * kSide + column);
      const double expected = exact(a, b, {row, column}, kDepth);
      REQUIRE(std::abs(d[at] - expected) <= sum_tolerance(kDepth, 1.0));
      REQUIRE(std::abs(in_halves[at] - expected) <= sum_tolerance(kDepth, 1.0));
    }
}

}  // namespace

TEST_CASE("operands and sums of kernels are those of the instruction", "[gpu][matrix_core]") {
  check_wrapper<32, Half>(MatrixValues::f16);
  check_wrapper<16, Half>(MatrixValues::f16);
  check_wrapper<32, Bf16>(MatrixValues::bf16);
  check_wrapper<16, Bf16>(MatrixValues::bf16);
}

TEST_CASE("a number is the sum of its parts in bf16: two of an f16, three of an f32", "[gpu][matrix_core]") {
  TensorSource source(9);
  std::vector<float> numbers = source.floats(1000, 300.0F);
  for (const float special : {0.0F, -0.0F, 1.0F, 0x1.FFFFFEp127F, -0x1.FFFFFEp-100F, INFINITY, -INFINITY})
    numbers.push_back(special);
  const auto sum_of_parts = [](float value, int parts) {
    float sum = 0;
    for (int i = 0; i < parts; ++i) sum += to_float(take_bf16(value));
    CHECK(value == 0);  // nothing is left
    return sum;
  };
  for (const float number : numbers) {
    CAPTURE(number);
    REQUIRE(sum_of_parts(number, 3) == number);
    const float half = f32_from_f16(f16_from_f32(number));
    REQUIRE(sum_of_parts(half, 2) == half);
  }
  float nan = NAN;
  CHECK(std::isnan(to_float(take_bf16(nan)) + to_float(take_bf16(nan))));
}

}  // namespace dculab::kernels::gpu::host_build
