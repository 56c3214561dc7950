#include "model/kv/kv_plans.hpp"

#include "core/kv/kivi.hpp"
#include "model/kv/kv_bytes.hpp"

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

Bytes kv_bytes_beside_block(const ModelShape& model, RetentionPolicy policy) {
  const auto beside = kv_policy_plan(policy).bytes_beside_block;
  Bytes bytes;
  for (std::size_t kind = 0; kind < model.kinds.size() && beside != nullptr; ++kind)
    if (model.kinds[kind].has_kv_heads() && !model.kinds[kind].gqa().shares_kv)
      bytes += beside(model.kinds[kind].gqa()) * model.num_layers(kind);
  return bytes;
}

Bytes kv_block_bytes(const ModelShape& model, const EngineOptions& options) {
  return kv_bytes_per_token(model, options.kv_cache_dtype) * options.block_size +
         kv_bytes_beside_block(model, options.kv_retention.policy);
}

}  // namespace dculab
