// What each format and policy of the KV cache puts into the plan of a step. One file for each that differs from plain K
// and V; kv_plans.cpp lists them.
#pragma once

#include "core/batch.hpp"
#include "core/step_plan.hpp"
#include "model/attention_kind.hpp"
#include "model/decoder_ops.hpp"

namespace dculab {

// Distinct bytes of K and V that an attention op moves in one layer.
struct KvBytes {
  Bytes read;
  Bytes read_as_activations{};  // of new tokens, where they are not read from the cache
  Bytes written{};              // what attention leaves behind
};

struct KvFormatPlan {
  // Adds to rope_and_cache what it writes of the new tokens.
  void (*add_cache_writes)(Op& op, const StepSizes& sizes, const Batch& batch);
  // Of the sequences in `phase`, whose work is known.
  KvBytes (*attention_bytes)(const Gqa& attention, const EngineOptions& options, const Batch& batch, Phase phase,
                             const AttentionWork& work);
};
[[nodiscard]] const KvFormatPlan& kv_format_plan(Dtype dtype);

// What a policy adds to a layer with grouped-query attention; null: nothing.
struct KvPolicyPlan {
  void (*before_cache)(StepPlan& plan, const StepSizes& sizes) = nullptr;
  void (*after_cache)(StepPlan& plan, const StepSizes& sizes) = nullptr;
  void (*after_attention)(StepPlan& plan, const StepSizes& sizes) = nullptr;
  // To rope_and_cache: what is kept of new tokens beside the cache.
  void (*add_kept)(Op& op, const StepSizes& sizes, const Batch& batch) = nullptr;
  Bytes (*bytes_beside_block)(const Gqa& attention) = nullptr;  // that it keeps of each KV block in a layer
};
[[nodiscard]] const KvPolicyPlan& kv_policy_plan(RetentionPolicy policy);

extern const KvFormatPlan kPlainKvPlan, kKiviPlan;
extern const KvPolicyPlan kSinksPlan, kHeavyHittersPlan, kCriticalBlocksPlan;

}  // namespace dculab
