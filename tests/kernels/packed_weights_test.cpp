// Are quantized matrices packed as the header says, and unusable ones refused?
#include "kernels/cpu/packed_weights.hpp"

#include <functional>
#include <stdexcept>

#include "tests/kernels/quantized_matrices.hpp"

namespace dculab::kernels {
namespace {

unsigned byte_at(const WeightView& view, std::size_t index) {
  return std::to_integer<unsigned>(static_cast<const std::byte*>(view.data)[index]);
}

std::string refusal_to_pack(const std::function<void(QuantizedMatrix&)>& change) {
  TensorSource source(3);
  QuantizedMatrix matrix = random_quantized(source, {5, 64, 4, 32}, GroupOrder::act_order);
  change(matrix);
  try {
    const PackedMatrix packed(matrix);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("int4 weights lie in strips of 16 rows, eight in-features in 64 bytes, scales and zero points before them") {
  TensorSource source(1);
  const QuantizedMatrix matrix = random_quantized(source, {18, 32, 4, 16});
  const PackedMatrix packed(matrix);
  const WeightView& view = packed.view();
  CHECK(view.dtype == Dtype::int4);
  CHECK(view.rows == 18);
  CHECK(view.group_size == 16);
  CHECK(view.permutation == nullptr);
  // Two groups of 48 bytes make 128; four steps of 64 bytes make 256.
  REQUIRE(cpu::packed_bytes(18, 32, 4, 16) == 2 * 384);
  const auto q = [&](std::size_t row, std::size_t column) { return unsigned{matrix.q[row * 32 + column]}; };
  CHECK(byte_at(view, 128) == (q(0, 0) | q(0, 4) << 4));
  CHECK(byte_at(view, 128 + 4 * 15 + 3) == (q(15, 3) | q(15, 7) << 4));
  CHECK(byte_at(view, 128 + 3 * 64 + 4 * 2 + 1) == (q(2, 25) | q(2, 29) << 4));
  CHECK(byte_at(view, 384 + 128 + 4 * 1) == (q(17, 0) | q(17, 4) << 4));
  CHECK(byte_at(view, 384 + 128 + 4 * 2) == 0);  // row 18 does not exist
  const unsigned scale = f16_from_f32(matrix.scales[17 * 2 + 1]);
  CHECK(byte_at(view, 384 + 48 + 2) == (scale & 0xFF));
  CHECK(byte_at(view, 384 + 48 + 3) == scale >> 8);
  CHECK(byte_at(view, 384 + 48 + 32 + 1) == matrix.zeros[17 * 2 + 1]);
}

TEST_CASE("int8 weights take four in-features in 64 bytes, with act-order in the order of their groups") {
  TensorSource source(2);
  const QuantizedMatrix matrix = random_quantized(source, {16, 24, 8, 8}, GroupOrder::act_order);
  const std::vector<std::int32_t> order = cpu::group_order(matrix);
  REQUIRE(order.size() == 24);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(matrix.group(order[i]) == static_cast<int>(i) / 8);
  CHECK(std::is_sorted(order.begin(), order.begin() + 8));
  const PackedMatrix packed(matrix);
  CHECK(packed.view().dtype == Dtype::int8);
  CHECK(byte_at(packed.view(), 192 + 64 + 4 * 3 + 2) == matrix.q[3 * 24 + static_cast<std::size_t>(order[6])]);
  CHECK(cpu::packed_bytes(16, 24, 8, 8) == 192 + 6 * 64);
}

TEST_CASE("groups that are in order need no permutation") {
  TensorSource source(4);
  QuantizedMatrix matrix = random_quantized(source, {3, 32, 4, 16});
  CHECK(cpu::group_order(matrix).empty());
  for (int k = 0; k < 32; ++k) matrix.g_idx.push_back(k / 16);
  CHECK(cpu::group_order(matrix).empty());
}

TEST_CASE("unpacking gives back the matrix that was packed") {
  TensorSource source(5);
  for (const int bits : {3, 4, 8})
    for (const QuantizedSizes sizes : {QuantizedSizes{5, 64, bits, 32}, {16, 24, bits, 8}, {33, 48, bits, 48}})
      for (const GroupOrder order : {GroupOrder::consecutive, GroupOrder::act_order}) {
        CAPTURE(bits, sizes.rows, sizes.columns, sizes.group_size);
        const QuantizedMatrix matrix = random_quantized(source, sizes, order);
        const PackedMatrix packed(matrix);
        const QuantizedMatrix unpacked = cpu::unpack_weights(packed.view(), sizes.columns);
        CHECK(unpacked.rows == sizes.rows);
        CHECK(unpacked.columns == sizes.columns);
        CHECK(unpacked.bits == (bits == 8 ? 8 : 4));
        CHECK(unpacked.group_size == sizes.group_size);
        CHECK(unpacked.q == matrix.q);
        CHECK(unpacked.scales == matrix.scales);
        CHECK(unpacked.zeros == matrix.zeros);
        for (int column = 0; column < sizes.columns; ++column) CHECK(unpacked.group(column) == matrix.group(column));
      }
}

TEST_CASE("packing refuses what the kernels do not serve") {
  CHECK(refusal_to_pack([](QuantizedMatrix&) {}).empty());
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.bits = 5; }), ContainsSubstring("2, 3, 4 or 8 bits"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.columns = 60; }), ContainsSubstring("multiple of 8"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.group_size = 12; }), ContainsSubstring("group_size"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.group_size = 24; }), ContainsSubstring("does not divide"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.q.pop_back(); }), ContainsSubstring("q is not"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.q[7] = 16; }), ContainsSubstring("does not fit"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.zeros.clear(); }), ContainsSubstring("scales and zeros"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.g_idx[0] = 1 - m.g_idx[0]; }),
             ContainsSubstring("unequal size"));
  CHECK_THAT(refusal_to_pack([](QuantizedMatrix& m) { m.g_idx[0] = 2; }), ContainsSubstring("does not exist"));
}

}  // namespace dculab::kernels
