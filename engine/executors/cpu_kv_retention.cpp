// The parts of the CPU executor that serve retention policies.
#include <algorithm>
#include <stdexcept>

#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {
namespace {

KvRetention retention_of(const StepPlan& plan) {
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::rope_and_cache) return op.kv_retention;
  return {};
}

bool decodes_several(const Batch& batch) {
  return std::ranges::any_of(batch.sequences, [](const SequenceSlice& sequence) {
    return sequence.phase == Phase::decode && (sequence.num_new_tokens > 1 || sequence.num_tree_tokens > 0);
  });
}

}  // namespace

void CpuExecutor::forget(SequenceId id) {
  sinks_.forget(id);
  heavy_hitters_.forget(id);
}

void CpuExecutor::fill_kv_cache(std::uint64_t seed) {
  kv_.fill_randomly(seed);
  sinks_.make_up_unseen();
  heavy_hitters_.make_up_unseen();
}

void CpuExecutor::begin_retention(const StepPlan& plan) {
  const KvRetention retention = retention_of(plan);
  if ((is_kivi() || retention.policy != RetentionPolicy::all) && decodes_several(plan.batch))
    throw std::invalid_argument("batch: a decode has one new token where what it drops could not be brought back");
  sinks_.begin(plan.batch, retention, kv_.options().block_size);
  heavy_hitters_.begin(plan.batch, retention, kv_.options().block_size);
}

void CpuExecutor::execute_shift_sink_keys(const Op& op, int layer) {
  require(op.m == sinks_.num_moving() && op.n == 2 * weights_.shape.heads().kv_width(), op, "has another shape");
  sinks_.shift(layer, kv_.layer(layer), positions_[op.layer_kind].cos_sin, threads_);
}

void CpuExecutor::execute_attention_scores(const Op& op, int layer) {
  const int prefills = inputs_.attention(Phase::prefill).num_seqs, decodes = inputs_.attention(Phase::decode).num_seqs;
  check_attention(op, prefills + decodes);
  require(heavy_hitters_.capacity() == kv_capacity(op.kv_retention, kv_.options().block_size), op,
          "keeps another number of tokens than rope_and_cache");
  const auto add = [&](Phase phase, int first, int count) {
    if (count > 0)
      kernels::cpu::attention_scores(threads_, workspace_,
                                     {.attention = bind_attention(op, layer, phase),
                                      .sums = heavy_hitters_.sums(layer, first, count),
                                      .sums_stride = heavy_hitters_.capacity()});
  };
  add(Phase::prefill, 0, prefills);
  add(Phase::decode, prefills, decodes);
}

}  // namespace dculab::engine
