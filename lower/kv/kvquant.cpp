// kvquant4, kvquant3 and kvquant2: on a CPU new tokens are quantized value by value.
#include "lower/attention.hpp"
#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower {
namespace {

// Of the CPU's kernel (kernels/cpu/kv/kvquant.cpp) for each value, one at a time so that all lanes but one are idle. Of
// K 12: a subtraction, a comparison, a division (as long as four), a multiplication, a magnitude, two comparisons with
// the outliers so far, a shift and an OR of its code. Of V 10: without comparison and division, with a comparison and
// the least and largest so far. For each bit of a code a load, a comparison and an addition.
constexpr double kValueInstructions = 11;
constexpr double kBitInstructions = 3;

// A task for each token, as all of rope_and_cache.
void add_coding(Launch& launch, const Op& op) {
  const Dtype dtype = op.attention.kv_dtype;
  const auto operands = op.operands();
  const double values = (operands[0].unique - (op.rotates ? operands[1].unique : Bytes())) /
                        storage(op.activation_dtype, static_cast<double>(op.m));  // K and V of a token
  for (const Operand& operand : operands)
    if (operand.role == OperandRole::kv_write)
      launch.arithmetic.stored_values =
          values * (operand.unique / kv_storage(dtype, values, static_cast<int>(values / 2), 1));
  launch.arithmetic.shaping_per_value = kCpuLanes * (kValueInstructions + kBitInstructions * bits(dtype));
}

}  // namespace

const KvFormatLowering kKvQuantLowering{.add_cache_work = add_coding};

}  // namespace dculab::lower
