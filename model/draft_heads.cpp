#include "model/draft_heads.hpp"

#include <iterator>
#include <vector>

#include "model/decoder_ops.hpp"
#include "model/plan_step.hpp"

namespace dculab {
namespace {

[[nodiscard]] WeightFormat plain(const ModelShape& model) { return {model.dtype, 0}; }

[[nodiscard]] StepSizes sizes_of(const ModelShape& model, const EngineOptions& options, std::int64_t tokens) {
  return {.model = model,
          .options = options,
          .num_layers = model.num_layers(0),
          .tokens = tokens,
          .logits_rows = tokens,
          .unwritten = 0};
}

}  // namespace

ModelShape mtp_shape(const ModelShape& model) {
  ModelShape mtp = model;
  mtp.name += " MTP";
  mtp.kinds = {model.layer(model.num_layers() - 1)};
  mtp.layers = {0};
  mtp.kv_sources.clear();
  mtp.num_nextn_predict_layers = 0;
  mtp.embedding_norm = false;
  return mtp;
}

void plan_mtp_step_into(StepPlan& plan, const ModelShape& mtp, const EngineOptions& options) {
  plan_step_into(plan, mtp, options);
  const StepSizes sizes = sizes_of(mtp, options, plan.batch.num_tokens());
  const int hidden = mtp.hidden_size;
  std::vector<Op> joined;
  for (const char* norm : {"enorm", "hnorm"})
    joined.push_back(
        outside_layers(plan_norm({norm, WeightSlot::none, Buffer::residual, Buffer::normed}, sizes, sizes.tokens, {}),
                       Stage::before_layers));
  joined.push_back(outside_layers(plan_matmul({"eh_proj", WeightSlot::none, Buffer::normed, Buffer::residual}, sizes,
                                              options.weights, sizes.tokens, hidden, 2 * hidden),
                                  Stage::before_layers));
  plan.ops.insert(plan.ops.begin() + 1, std::make_move_iterator(joined.begin()), std::make_move_iterator(joined.end()));
}

Bytes mtp_footprint(const ModelShape& mtp, int num_layers, WeightFormat layers) {
  const double hidden = mtp.hidden_size;
  const Bytes joined = storage(mtp.dtype, 2 * hidden) + weight_storage(layers, 2 * hidden * hidden);
  const Bytes layer = layer_matrix_bytes(mtp, mtp.kinds.front(), layers) + storage(mtp.dtype, plain_values(mtp));
  return (joined + layer) * num_layers;
}

void plan_medusa_heads_into(StepPlan& plan, const ModelShape& model, const EngineOptions& options, int num_heads) {
  const auto rows = static_cast<std::int64_t>(plan.batch.sequences.size());
  const StepSizes sizes = sizes_of(model, options, rows);
  const int hidden = model.hidden_size;
  plan.ops.clear();
  plan.attention_split = options.attention_split;
  plan.kv_retention = options.kv_retention;
  plan.filtered_logits = 0;
  for (int head = 0; head < num_heads; ++head) {
    plan.ops.push_back(
        outside_layers(plan_matmul({"medusa_linear", WeightSlot::none, Buffer::normed, Buffer::projected}, sizes,
                                   plain(model), rows, hidden, hidden, Bias::one),
                       Stage::after_layers));
    plan.ops.push_back(outside_layers(plan_residual_add(sizes, false), Stage::after_layers));
    plan.ops.push_back(outside_layers(plan_matmul({"medusa_lm_head", WeightSlot::none, Buffer::normed, Buffer::logits},
                                                  sizes, plain(model), rows, model.vocab_size, hidden),
                                      Stage::after_layers));
    if (model.tensor_parallel_size > 1)
      plan.ops.push_back(outside_layers(
          plan_collective(OpKind::all_gather,
                          {.name = "logits_all_gather", .input = Buffer::logits, .output = Buffer::logits}, sizes, rows,
                          model.vocab_size),
          Stage::after_layers));
  }
}

Bytes medusa_footprint(const ModelShape& model, int num_heads) {
  const double hidden = model.hidden_size;
  return num_heads * storage(model.dtype, hidden * hidden + hidden + hidden * model.vocab_size);
}

}  // namespace dculab
