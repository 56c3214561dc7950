#include "model/plan_step.hpp"

#include "model/attention_work.hpp"
#include "model/decoder_ops.hpp"
#include "model/expert_shard.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

// Of a mixture in expert parallelism, where devices that share the attention have the same tokens: those whose experts
// this one chooses, and for which it has the shared ones.
[[nodiscard]] StepSizes of_own_tokens(StepSizes sizes) {
  const auto& experts = sizes.layer().experts;
  const int devices = experts && experts->part ? experts->part->attention_devices : 1;
  sizes.tokens = std::max<std::int64_t>(1, (sizes.tokens + devices / 2) / devices);
  return sizes;
}

// What the next norm adds to the residual after both halves of a block: the MLP's, or of a parallel block both.
[[nodiscard]] Added added_after(BlockKind block) {
  return {Buffer::projected, block == BlockKind::sequential ? Buffer::none : Buffer::mlp_projected};
}

// A sum of `width` values a token over the devices, in `buffer`.
void plan_all_reduce(StepPlan& plan, std::string_view name, Buffer buffer, const StepSizes& sizes, int width,
                     Stage stage = Stage::layer) {
  if (sizes.model.tensor_parallel_size == 1) return;
  const Op op = plan_collective(OpKind::all_reduce, {.name = name, .input = buffer, .output = buffer}, sizes,
                                sizes.tokens, width);
  plan.ops.push_back(stage == Stage::layer ? op : outside_layers(op, stage));
}

// What a half of a layer begins with, in `normed`: the norm of the residual, or the residual itself where the half's
// norm comes after it. Both add to the residual what the half before gave.
void plan_beginning(StepPlan& plan, const StepSizes& sizes, const OpPlace& norm, const Added& added,
                    bool adds_layer_before) {
  if (sizes.model.residual_streams > 1) {
    plan_half_of_streams(plan, sizes);
    return plan.ops.push_back(
        plan_norm({norm.name, norm.weight, Buffer::normed, Buffer::normed}, sizes, sizes.tokens, {}));
  }
  if (sizes.layer().norms == NormPlacement::post)
    return plan.ops.push_back(plan_residual_add(sizes, adds_layer_before));
  Op op = plan_norm(norm, sizes, sizes.tokens, added);
  op.adds_layer_before = adds_layer_before;
  plan.ops.push_back(op);
}

// The norm of what a half of a layer gave, where there is one, or its way into the residual streams.
void plan_post_norm(StepPlan& plan, const StepSizes& sizes, std::string_view name, WeightSlot slot) {
  if (sizes.layer().norms != NormPlacement::pre)
    plan.ops.push_back(plan_norm({name, slot, Buffer::projected, Buffer::projected}, sizes, sizes.tokens, {}));
  if (sizes.model.residual_streams > 1) plan.ops.push_back(plan_streams_of_half(sizes));
}

void plan_grouped_attention(StepPlan& plan, const StepSizes& sizes) {
  const Gqa& attention = sizes.layer().gqa();
  const Heads& heads = attention.heads;
  const WeightFormat format = sizes.format_of(WeightSlot::qkv_proj);
  const int hidden = sizes.model.hidden_size;
  plan.ops.push_back(
      plan_matmul({attention.shares_kv ? "q_proj" : "qkv_proj", WeightSlot::qkv_proj, Buffer::normed, Buffer::qkv},
                  sizes, format, sizes.tokens, attention.projected_width(), hidden, bias_if(attention.qkv_bias)));
  if (attention.qk_norm != QkNorm::none) plan.ops.push_back(plan_qk_norm(sizes));
  if (attention.qk_norm == QkNorm::whole)  // sums of squares of Q and of K
    plan_all_reduce(plan, "qk_norm_all_reduce", Buffer::none, sizes, 2);
  const KvPolicyPlan& policy = kv_policy_plan(sizes.options.kv_retention.policy);
  if (policy.before_cache != nullptr) policy.before_cache(plan, sizes);
  plan.ops.push_back(plan_rope_and_cache(sizes, plan.batch));
  if (policy.after_cache != nullptr) policy.after_cache(plan, sizes);
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    const Op op = plan_attention(attention, sizes.options, plan.batch, phase);
    if (op.attention.num_sequences > 0) plan.ops.push_back(of_layers(op, sizes));
  }
  if (policy.after_attention != nullptr) policy.after_attention(plan, sizes);
  if (attention.output_gate) plan.ops.push_back(plan_output_gate(sizes));
  plan.ops.push_back(plan_matmul({"o_proj", WeightSlot::o_proj, Buffer::attention, Buffer::projected}, sizes, format,
                                 sizes.tokens, hidden, heads.query_width(), bias_if(attention.output_bias)));
}

void plan_attention_half(StepPlan& plan, const StepSizes& sizes) {
  const LayerKind& layer = sizes.layer();
  plan_beginning(plan, sizes, {"input_layernorm", WeightSlot::attention_norm, Buffer::residual, Buffer::normed},
                 added_after(layer.block), true);
  if (layer.mla() != nullptr)
    plan_latent_attention(plan, sizes);
  else if (layer.compressed() != nullptr)
    plan_compressed_attention(plan, sizes);
  else if (layer.delta_net() != nullptr)
    plan_delta_net(plan, sizes);
  else
    plan_grouped_attention(plan, sizes);
  plan_all_reduce(plan, "attention_all_reduce", Buffer::projected, sizes, sizes.model.hidden_size);
  plan_post_norm(plan, sizes, "attention_post_norm", WeightSlot::attention_post_norm);
}

// The MLP that all tokens go through.
void plan_dense(StepPlan& plan, const StepSizes& whole) {
  const StepSizes sizes = of_own_tokens(whole);
  const LayerKind& layer = sizes.layer();
  const Dense& mlp = layer.mlp;
  const bool gated = mlp.kind == MlpKind::gated;
  const Bias bias = bias_if(mlp.bias);
  const WeightFormat format = sizes.format_of(WeightSlot::up_proj);
  const int hidden = sizes.model.hidden_size;
  const bool sequential = layer.block == BlockKind::sequential;
  plan.ops.push_back(plan_matmul({gated ? "gate_up_proj" : "up_proj", WeightSlot::up_proj, Buffer::normed, Buffer::up},
                                 sizes, format, sizes.tokens, mlp.up_width(), hidden, bias));
  plan.ops.push_back(plan_activation(sizes));
  plan.ops.push_back(plan_matmul(
      {"down_proj", WeightSlot::down_proj, Buffer::activated, sequential ? Buffer::projected : Buffer::mlp_projected},
      sizes, format, sizes.tokens, hidden, mlp.intermediate_size, bias));
}

// A norm that experts have beside those of the layer: of what the router gets, or the experts,
void plan_norm_before_experts(StepPlan& plan, const StepSizes& sizes, const char* name) {
  if (sizes.layer().experts && sizes.layer().experts->own_norms)
    plan.ops.push_back(
        plan_norm({name, WeightSlot::mlp_norm, Buffer::residual, Buffer::normed}, sizes, sizes.tokens, {}));
}

// and of what the MLP for all tokens gave, or the experts.
void plan_norm_after_experts(StepPlan& plan, const StepSizes& sizes, const char* name) {
  if (sizes.layer().experts && sizes.layer().experts->own_norms)
    plan.ops.push_back(
        plan_norm({name, WeightSlot::mlp_post_norm, Buffer::projected, Buffer::projected}, sizes, sizes.tokens, {}));
}

// Router and routed experts; what they give is summed by plan_combine.
void plan_experts(StepPlan& plan, const StepSizes& sizes) {
  const Experts& experts = *sizes.layer().experts;
  const int hidden = sizes.model.hidden_size, width = experts.intermediate_size;
  plan_norm_before_experts(plan, sizes, "router_norm");
  plan.ops.push_back(plan_matmul({"router", WeightSlot::router, Buffer::normed, Buffer::router_logits}, sizes,
                                 {sizes.model.dtype, 0}, of_own_tokens(sizes).tokens, experts.num_experts, hidden,
                                 bias_if(experts.bias)));
  plan.ops.push_back(plan_route(sizes));
  plan_norm_before_experts(plan, sizes, "experts_norm");
  if (experts.part) plan.ops.push_back(plan_token_exchange(OpKind::dispatch_tokens, sizes));
  plan.ops.push_back(
      plan_expert_matmul({"experts_gate_up_proj", WeightSlot::expert_up_proj, Buffer::normed, Buffer::expert_up}, sizes,
                         2 * width, hidden));
  plan.ops.push_back(plan_expert_activation(sizes));
  plan.ops.push_back(plan_expert_matmul(
      {"experts_down_proj", WeightSlot::expert_down_proj, Buffer::expert_activated, Buffer::expert_output}, sizes,
      hidden, width));
  if (experts.part) plan.ops.push_back(plan_token_exchange(OpKind::return_tokens, sizes));
}

// Every device has sums of its part of the tokens; those that share the attention need all of them.
void plan_gathering(StepPlan& plan, const StepSizes& sizes) {
  if (sizes.model.tensor_parallel_size == 1) return;
  plan.ops.push_back(plan_collective(
      OpKind::all_gather, {.name = "tokens_all_gather", .input = Buffer::projected, .output = Buffer::projected}, sizes,
      of_own_tokens(sizes).tokens, sizes.model.hidden_size));
}

// A parallel block adds what attention gave with what the MLP gives, in the next norm; its own second norm, where it
// has one, adds nothing.
void plan_mlp_half(StepPlan& plan, StepSizes sizes) {
  const LayerKind& layer = sizes.layer();
  ExpertRows rows;
  if (layer.experts) rows = expert_rows(*layer.experts, sizes.options.expert_load, sizes.tokens);
  sizes.expert_rows = &rows;
  const Dense& mlp = layer.mlp;
  const bool sequential = layer.block == BlockKind::sequential;
  if (layer.block != BlockKind::parallel)
    plan_beginning(plan, sizes, {"post_attention_layernorm", WeightSlot::mlp_norm, Buffer::residual, Buffer::normed},
                   {sequential ? Buffer::projected : Buffer::none}, false);
  if (layer.experts) plan_experts(plan, sizes);
  if (mlp.intermediate_size > 0) plan_dense(plan, sizes);
  plan_norm_after_experts(plan, sizes, "shared_post_norm");
  if (layer.experts) plan.ops.push_back(plan_combine(sizes));
  plan_norm_after_experts(plan, sizes, "experts_post_norm");
  if (layer.experts && layer.experts->part)
    plan_gathering(plan, sizes);
  else
    plan_all_reduce(plan, "mlp_all_reduce", sequential || layer.experts ? Buffer::projected : Buffer::mlp_projected,
                    sizes, sizes.model.hidden_size);
  plan_post_norm(plan, sizes, "mlp_post_norm", WeightSlot::mlp_post_norm);
}

// After the last layer, of the rows whose logits are wanted.
void plan_logits(StepPlan& plan, const StepSizes& sizes) {
  const ModelShape& model = sizes.model;
  const std::int64_t rows = sizes.logits_rows;
  const bool has_streams = model.residual_streams > 1;
  if (has_streams) plan_head_of_streams(plan, sizes);
  plan.ops.push_back(outside_layers(plan_norm({"norm", WeightSlot::final_norm, Buffer::residual, Buffer::normed}, sizes,
                                              rows, has_streams ? Added{} : added_after(sizes.layer().block)),
                                    Stage::after_layers));
  const Op head = plan_matmul({"lm_head", WeightSlot::lm_head, Buffer::normed, Buffer::logits}, sizes,
                              model.head_format(sizes.options.weights), rows, model.vocab_size, model.hidden_size);
  plan.ops.push_back(outside_layers(head, Stage::after_layers));
  if (model.final_logit_soft_cap > 0) plan.ops.push_back(plan_soft_cap(sizes));
  if (model.tensor_parallel_size == 1) return;
  const Op logits = plan_collective(OpKind::all_gather,
                                    {.name = "logits_all_gather", .input = Buffer::logits, .output = Buffer::logits},
                                    sizes, rows, model.vocab_size);
  plan.ops.push_back(outside_layers(logits, Stage::after_layers));
}

}  // namespace

void plan_step_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options) {
  std::int64_t logits_rows = 0;
  for (const SequenceSlice& sequence : plan.batch.sequences) logits_rows += sequence.num_logits;
  StepSizes sizes{.model = model,
                  .options = options,
                  .tokens = plan.batch.num_tokens(),
                  .logits_rows = logits_rows,
                  .unwritten = plan.batch.num_unwritten_tokens()};
  plan.ops.clear();
  plan.attention_split = options.attention_split;
  plan.kv_retention = options.kv_retention;
  plan.filtered_logits = plan.batch.filters_logits ? logits_rows * model.vocab_size * model.tensor_parallel_size : 0;
  plan.ops.push_back(plan_embedding(sizes));
  plan_all_reduce(plan, "embedding_all_reduce", Buffer::residual, sizes, model.hidden_size, Stage::before_layers);
  if (model.residual_streams > 1) plan.ops.push_back(plan_streams_of_embedding(sizes));
  if (model.embedding_norm)
    plan.ops.push_back(outside_layers(
        plan_norm({"word_embeddings_layernorm", WeightSlot::embed_norm, Buffer::residual, Buffer::residual}, sizes,
                  sizes.tokens, {}),
        Stage::before_layers));
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    sizes.use(kind);
    plan_attention_half(plan, sizes);
    plan_mlp_half(plan, sizes);
  }
  sizes.use(model.layers.back());
  if (logits_rows > 0) plan_logits(plan, sizes);
}

StepPlan plan_step(const ModelShape& model, const EngineOptions& options, Batch batch) {
  StepPlan plan;
  plan.batch = std::move(batch);
  plan_step_into(plan, model, options);
  return plan;
}

StepPlanner planner_of(const ModelShape& model, const EngineOptions& options) {
  return [&model, &options](StepPlan& plan) { plan_step_into(plan, model, options); };
}

}  // namespace dculab
