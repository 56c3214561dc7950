#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower {

const KvFormatLowering& kv_format_lowering(Dtype dtype) {
  static constexpr KvFormatLowering kNothing;
  switch (dtype) {
    case Dtype::kivi4:
    case Dtype::kivi2:
      return kKiviLowering;
    case Dtype::kvquant4:
    case Dtype::kvquant3:
    case Dtype::kvquant2:
      return kKvQuantLowering;
    default:
      return kNothing;
  }
}

const Operand* kept_beside_cache(const Op& op) {
  const auto operands = op.operands();
  if (op.kind != OpKind::rope_and_cache || operands.size() < 2) return nullptr;
  const bool is_behind = operands[operands.size() - 2].role == OperandRole::kv_write;
  return is_behind && operands.back().role == OperandRole::output ? &operands.back() : nullptr;
}

KvOpLowering kv_op_lowering(OpKind kind) {
  switch (kind) {
    case OpKind::update_block_bounds:
      return lower_bounds_update;
    case OpKind::choose_critical_blocks:
      return lower_block_choice;
    default:
      return nullptr;
  }
}

}  // namespace dculab::lower
