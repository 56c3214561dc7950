#include "lower/expert_product.hpp"

#include <algorithm>
#include <cmath>

namespace dculab::lower {
namespace {

[[nodiscard]] double touched(const Op& op) { return std::max(1.0, op.groups.touched); }

}  // namespace

Op of_one_expert(const Op& op) {
  Op one = op;
  const double experts = touched(op);
  one.groups = {};
  one.m = std::max<std::int64_t>(1, std::llround(static_cast<double>(op.m) / experts));
  one.flops = op.flops / experts;
  for (int index = 0; index < one.num_operands; ++index)
    one.operand_storage[static_cast<std::size_t>(index)].unique *= 1 / experts;
  return one;
}

Launch of_all_experts(Launch launch, const Op& op) {
  const double experts = touched(op);
  for (Access& access : launch.accesses()) access.unique *= experts;
  for (Access& access : launch.accesses())  // rows of tokens go to several experts
    if (access.role == OperandRole::activation && access.unique > Bytes())
      access.requests *=
          storage(op.activation_dtype, static_cast<double>(op.m) * static_cast<double>(op.k)) / access.unique;
  launch.grid.workgroups *= experts;
  launch.grid.most_workgroups *= experts;
  launch.tiles.rows *= experts;
  Arithmetic& arithmetic = launch.arithmetic;
  arithmetic.multiply *= experts;
  arithmetic.stored_values *= experts;
  arithmetic.softmax *= experts;
  arithmetic.issued *= experts;
  arithmetic.packed *= experts;
  arithmetic.integer_instructions *= experts;
  launch.sums *= experts;
  launch.spills.moved *= experts;
  launch.most_parts = 1;
  if (launch.parts == 0) launch.parts = 1;
  launch.streams = {};
  return launch;
}

}  // namespace dculab::lower
