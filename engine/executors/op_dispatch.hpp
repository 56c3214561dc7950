// Which member of an executor runs an op: one table for all executors.
#pragma once

#include "engine/executors/plan_walk.hpp"

namespace dculab::engine {

// Calls execute_NAME(op, layer) of an executor that has it as a friend. Throws std::invalid_argument for ops that no
// executor runs.
struct OpDispatch {
  template <class Executor>
  static void run(Executor& executor, const Op& op, const ModelShape& shape, int layer) {
    require_depth(op, shape);
    switch (op.kind) {
      case OpKind::embedding:
        return executor.execute_embedding(op);
      case OpKind::rms_norm:
      case OpKind::layer_norm:
        return executor.execute_norm(op, layer);
      case OpKind::matmul:
      case OpKind::route_tokens:
      case OpKind::combine_experts:
        return run_product(executor, op, layer);
      case OpKind::qk_norm:
      case OpKind::rope_and_cache:
      case OpKind::attention_prefill:
      case OpKind::attention_decode:
        return layer_of(op, shape).mla() != nullptr ? run_latent(executor, op, layer) : run_gqa(executor, op, layer);
      case OpKind::residual_add:
        return executor.execute_residual_add(op, layer);
      case OpKind::soft_cap:
        return executor.execute_soft_cap(op);
      case OpKind::activation_mul:
        return executor.execute_activation(op);
      case OpKind::shift_sink_keys:
      case OpKind::attention_scores:
      case OpKind::update_block_bounds:
      case OpKind::choose_critical_blocks:
        return executor.execute_kv_op(op, layer);
      case OpKind::all_reduce:
      case OpKind::all_gather:
      case OpKind::dispatch_tokens:
      case OpKind::return_tokens:
        return run_exchange(executor, op, layer);
      case OpKind::output_gate:
      case OpKind::causal_conv:
      case OpKind::delta_rule:
      case OpKind::gated_norm:
      case OpKind::compress_kv:
      case OpKind::index_scores:
      case OpKind::choose_entries:
      case OpKind::mix_streams:
        return refuse(op);
    }
  }

 private:
  static void refuse(const Op& op) { require(false, op, "is of a part of a model that is predicted, not run"); }

  // Executors that have a part of a model know what to exchange.
  template <class Executor>
  static void run_exchange(Executor& executor, const Op& op, int layer) {
    if constexpr (requires { executor.execute_collective(op, layer); }) {
      const bool moves_tokens = op.kind == OpKind::dispatch_tokens || op.kind == OpKind::return_tokens;
      moves_tokens ? executor.execute_token_exchange(op, layer) : executor.execute_collective(op, layer);
    } else {
      require(false, op, "is for several devices: the engine runs on one");
    }
  }

  [[nodiscard]] static Phase phase_of(const Op& op) {
    return op.kind == OpKind::attention_prefill ? Phase::prefill : Phase::decode;
  }

  // Products of all tokens, of experts, of heads, and those that expand latents; what goes before and after those of
  // experts.
  template <class Executor>
  static void run_product(Executor& executor, const Op& op, int layer) {
    if (op.kind == OpKind::route_tokens) return executor.execute_route(op, layer);
    if (op.kind == OpKind::combine_experts) return executor.execute_combine(op, layer);
    const bool of_groups = op.groups.count > 0;
    if (op.weight == WeightSlot::kv_b_proj)
      return of_groups ? executor.execute_absorption(op, layer) : executor.execute_expansion(op, layer);
    of_groups ? executor.execute_expert_matmul(op, layer) : executor.execute_matmul(op, layer);
  }

  template <class Executor>
  static void run_gqa(Executor& executor, const Op& op, int layer) {
    if (op.kind == OpKind::qk_norm) return executor.execute_qk_norm(op, layer);
    if (op.kind == OpKind::rope_and_cache) return executor.execute_rope_and_cache(op, layer);
    executor.execute_attention(op, layer, phase_of(op));
  }

  template <class Executor>
  static void run_latent(Executor& executor, const Op& op, int layer) {
    if (op.kind == OpKind::qk_norm) return executor.execute_latent_norm(op, layer);
    if (op.kind == OpKind::rope_and_cache) return executor.execute_latent_cache(op, layer);
    executor.execute_latent_attention(op, layer, phase_of(op));
  }
};

}  // namespace dculab::engine
