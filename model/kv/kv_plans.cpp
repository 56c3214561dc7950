#include "model/kv/kv_plans.hpp"

#include "core/kv/kivi.hpp"

namespace dculab {

const KvFormatPlan& kv_format_plan(Dtype dtype) { return is_kivi(dtype) ? kKiviPlan : kPlainKvPlan; }

const KvPolicyPlan& kv_policy_plan(RetentionPolicy policy) {
  static constexpr KvPolicyPlan kNothing;
  switch (policy) {
    case RetentionPolicy::all:
    case RetentionPolicy::window:
      return kNothing;
    case RetentionPolicy::sinks:
      return kSinksPlan;
    case RetentionPolicy::heavy_hitters:
      return kHeavyHittersPlan;
    case RetentionPolicy::critical_blocks:
      return kCriticalBlocksPlan;
  }
  return kNothing;
}

}  // namespace dculab
