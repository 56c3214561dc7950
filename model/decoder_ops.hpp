// The ops of a decoder, one function each: what each computes and the bytes that it must touch. plan_step.cpp puts them
// in order; attention's own are in attention_work.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "model/model_shape.hpp"

namespace dculab {

struct ExpertRows;

// The sizes of a step that every op needs.
struct StepSizes {
  const ModelShape& model;
  const EngineOptions& options;
  std::size_t kind = 0;                     // of the layers that the op runs for: an index of model.kinds
  int num_layers = 0;                       // of that kind
  std::int64_t tokens;                      // new tokens of all sequences
  std::int64_t logits_rows;                 // tokens whose logits are wanted
  std::int64_t unwritten;                   // tokens whose K and V are in the cache already
  const ExpertRows* expert_rows = nullptr;  // where the layer has experts: what this device's get

  void use(std::size_t other) {
    kind = other;
    num_layers = model.num_layers(other);
  }
  [[nodiscard]] const LayerKind& layer() const { return model.kinds[kind]; }
  // Precondition: the layer has grouped-query attention.
  [[nodiscard]] const Heads& heads() const { return layer().gqa().heads; }
  [[nodiscard]] WeightFormat format_of(WeightSlot slot) const {
    return model.slot_format(slot, layer(), options.weights);
  }
};

// Of the sequences of a step that are in a phase.
struct PhaseTokens {
  std::int64_t sequences = 0, added = 0, context = 0;  // added: new tokens; context: all tokens, with these
};
[[nodiscard]] PhaseTokens tokens_of(const Batch& batch, Phase phase);

// What an op is called, whose weights it reads, and where its input comes from and its output goes.
struct OpPlace {
  std::string_view name;
  WeightSlot weight = WeightSlot::none;
  Buffer input = Buffer::none, output = Buffer::none;
};

// An op of every layer of a kind, without work or operands: `rows` of `columns` values.
[[nodiscard]] Op make_op(OpKind kind, const OpPlace& place, const StepSizes& sizes, std::int64_t rows, int columns);

// An op of one layer for all layers of the kind.
[[nodiscard]] Op of_layers(Op op, const StepSizes& sizes);

// An op that is executed once.
[[nodiscard]] Op outside_layers(Op op, Stage stage);

// Bytes of `values` activations.
[[nodiscard]] Bytes activations(const StepSizes& sizes, double values);

enum class Bias : std::uint8_t { none, one };

[[nodiscard]] constexpr Bias bias_if(bool has_bias) { return has_bias ? Bias::one : Bias::none; }

// y[num_rows, n] = x[num_rows, k] w[n, k]^T (+ bias[n]).
[[nodiscard]] Op plan_matmul(const OpPlace& place, const StepSizes& sizes, WeightFormat format, std::int64_t num_rows,
                             int n, int k, Bias bias = Bias::none);

// What a norm adds to the residual; none where it adds less.
using Added = std::array<Buffer, 2>;

// residual += x for each of `added`; out = norm(residual).
[[nodiscard]] Op plan_norm(const OpPlace& place, const StepSizes& sizes, std::int64_t rows, const Added& buffers);

// residual += projected, unless it is the first layer's; out = residual. Where no norm stands before a layer's half.
[[nodiscard]] Op plan_residual_add(const StepSizes& sizes, bool adds_layer_before);

// RMS norms in place, of heads of `head_dim` values, `width` of a token in all, with `weights` weights.
[[nodiscard]] Op plan_head_norm(const OpPlace& place, const StepSizes& sizes, int width, int head_dim, int weights);

// In place, in the QKV buffer.
[[nodiscard]] Op plan_qk_norm(const StepSizes& sizes);

// Of the logits, in place.
[[nodiscard]] Op plan_soft_cap(const StepSizes& sizes);

// Of the output of attention, in place, by the gate that lies behind Q, K and V.
[[nodiscard]] Op plan_output_gate(const StepSizes& sizes);

// latent_ops.cpp, compressed_ops.cpp, delta_net_ops.cpp: the ops of a layer between its first norm and what its
// attention gives, in `projected`.
void plan_latent_attention(StepPlan& plan, const StepSizes& sizes);
void plan_compressed_attention(StepPlan& plan, const StepSizes& sizes);
void plan_delta_net(StepPlan& plan, const StepSizes& sizes);

// stream_ops.cpp: what models with residual streams have in place of the sums in norms. The embedding in all of them;
// of them the input of a half of a layer, and its output back to them; and the input of the final norm.
[[nodiscard]] Op plan_streams_of_embedding(const StepSizes& sizes);
void plan_half_of_streams(StepPlan& plan, const StepSizes& sizes);
[[nodiscard]] Op plan_streams_of_half(const StepSizes& sizes);
void plan_head_of_streams(StepPlan& plan, const StepSizes& sizes);

// A product for each of `groups`, of its own rows [tokens, k] with its own part of the weights [n, k].
[[nodiscard]] Op plan_grouped_product(const OpPlace& place, const StepSizes& sizes, int groups, std::int64_t tokens,
                                      int n, int k);

// A product of the experts: rows of all tokens' choices, sorted by expert.
[[nodiscard]] Op plan_expert_matmul(const OpPlace& place, const StepSizes& sizes, int n, int k);

// Chooses each token's experts by their logits, and sorts what they get.
[[nodiscard]] Op plan_route(const StepSizes& sizes);

// The weighted sum of what a token's experts gave, and what the shared ones gave.
[[nodiscard]] Op plan_combine(const StepSizes& sizes);

// Expert parallelism: tokens go to the devices of their experts (dispatch_tokens), outputs come back (return_tokens).
[[nodiscard]] Op plan_token_exchange(OpKind kind, const StepSizes& sizes);

[[nodiscard]] Op plan_embedding(const StepSizes& sizes);
// Of the MLP for all tokens, or of the experts.
[[nodiscard]] Op plan_activation(const StepSizes& sizes);
[[nodiscard]] Op plan_expert_activation(const StepSizes& sizes);

// What devices that share the model exchange: Megatron's two sums a layer, that of the embedding, and the logits.
[[nodiscard]] Op plan_collective(OpKind kind, const OpPlace& place, const StepSizes& sizes, std::int64_t rows,
                                 int width);

// cache_ops.cpp: rotates Q and K, and writes K and V.
[[nodiscard]] Op plan_rope_and_cache(const StepSizes& sizes, const Batch& batch);

}  // namespace dculab
