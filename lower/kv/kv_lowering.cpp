#include "lower/kv/kv_lowering.hpp"

namespace dculab::lower {

const KvFormatLowering& kv_format_lowering(Dtype dtype) {
  static constexpr KvFormatLowering kNothing;
  switch (dtype) {
    case Dtype::kivi4:
    case Dtype::kivi2:
      return kKiviLowering;
    default:
      return kNothing;
  }
}

}  // namespace dculab::lower
