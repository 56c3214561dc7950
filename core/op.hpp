// One kernel-sized operation of an engine step: what it computes, and the bytes it must touch to do so.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/dtype.hpp"
#include "core/expert_load.hpp"
#include "core/units.hpp"

namespace dculab {

enum class OpKind : std::uint8_t {
  embedding,          // gather rows of the embedding table
  rms_norm,           // with the residual addition fused in, except for the first
  layer_norm,         // likewise; its weight has a bias
  matmul,             // y[m, n] = x[m, k] * w[n, k]^T
  shift_sink_keys,    // StreamingLLM: rotate the first keys to where they stand now, write them to their slots
  qk_norm,            // RMS norms of Q and K
  rope_and_cache,     // rotate Q and K (not with ALiBi), write K and V to their slots
  attention_prefill,  // paged, causal, tiled online softmax
  attention_decode,   // paged, one query token per sequence
  attention_scores,   // H2O: how much attention each cached token gets, summed up
  activation_mul,     // silu(gate) * up, or the plain activation: gelu(up)
  route_tokens,       // chooses each token's experts by the router's logits, and sorts tokens by expert
  combine_experts,    // the weighted sum of what a token's experts gave
  output_gate,        // attention's output times the sigmoid of a gate of each value
  causal_conv,        // gated delta net: a convolution of Q, K and V over the newest tokens
  delta_rule,         // gated delta net: the state takes in the new tokens, and is read
  gated_norm,         // gated delta net: the norm of each head's output, times the activation of a gate
  compress_kv,        // makes compressed entries of tokens' values, by a softmax of weights over the tokens of each
  index_scores,       // the indexer's score of each entry for each token
  choose_entries,     // of each token the entries that score best
  mix_streams,        // hyper-connections: residual streams to a half's input, or a half's output to them
  residual_add,       // where no norm does it: the residual plus what a layer's half gave
  soft_cap,           // of logits: cap * tanh(logit / cap)
  all_reduce,         // m rows of n values, summed over the devices that share the model
  all_gather,         // m rows of n values of each device, side by side on all of them
  dispatch_tokens,    // expert parallelism: m rows of n values go to the devices of their experts
  return_tokens,      // and what those computed comes back, where it is summed up

  // Quest: the minimum and maximum of each key channel of a block take in the new tokens; of each decode and KV head
  // the blocks are chosen that attention loads.
  update_block_bounds,
  choose_critical_blocks,
};

[[nodiscard]] std::string_view name(OpKind kind);

enum class OperandRole : std::uint8_t { weight, activation, kv_read, kv_write, block_table, output };

// Which of the model's weights an op reads: those of one module, or of modules that share their input. Of a layer: of
// the layer that it runs for.
enum class WeightSlot : std::uint8_t {
  none,
  embed_tokens,
  embed_norm,
  attention_norm,
  qkv_proj,     // K and V are missing where an earlier layer's are read
  qkv_a_proj,   // MLA: of the queries' latent, or the queries; of the KV latent and its rotated key
  qk_norm,      // of Q and K, or of MLA's latents
  q_b_proj,     // MLA: the queries from their latent
  kv_b_proj,    // MLA: K and V of all heads from the latent
  sinks,        // of each query head the score of an attention sink
  delta_proj,   // gated delta net: Q, K, V and the output's gate
  delta_gates,  // gated delta net: of each head decay and step
  delta_conv,
  delta_norm,
  compress_proj,  // what entries are made from, the indexer's too, and the weights of its heads
  compress_norm,  // of the entries; and a bias of the weights by the place in an entry
  o_a_proj,       // of each group of heads a latent
  o_proj,
  attention_post_norm,
  mlp_norm,
  router,
  shared_gate,
  expert_up_proj,    // gate and up of each expert
  expert_down_proj,  // of each expert
  up_proj,           // of a gated MLP gate and up
  down_proj,
  mlp_post_norm,
  streams,  // weights of the residual streams before attention, and before the MLP
  final_norm,
  head_streams,  // before the final norm
  lm_head,
};
inline constexpr std::size_t kWeightSlots = 31;

// Each layer has its own.
[[nodiscard]] constexpr bool is_of_layer(WeightSlot slot) {
  return slot >= WeightSlot::attention_norm && slot <= WeightSlot::streams;
}

// Activations that ops hand on to each other: [tokens, width] each.
enum class Buffer : std::uint8_t {
  none,
  residual,          // [tokens, hidden_size]
  normed,            // [tokens, hidden_size]: what a layer's half begins with
  qkv,               // [tokens, query_width + 2 * kv_width]; MLA: the queries or their latent, then the KV latent
  queries,           // MLA, [tokens, query_width]
  expanded,          // MLA, [context tokens, expanded_width]: K without its rotated part, and V
  latent_queries,    // MLA, [tokens, num_attention_heads * latent_width]
  latent_outputs,    // MLA, [tokens, num_attention_heads * kv_lora_rank]
  delta,             // gated delta net, [tokens, conv_width + value_width]: Q, K, V and the output's gate
  attention,         // [tokens, query_width]; of heads of V where those have another size
  projected,         // [tokens, hidden_size]: what the next norm adds to the residual
  mlp_projected,     // [tokens, hidden_size]: the MLP's, where attention and MLP stand side by side
  up,                // [tokens, intermediate_size], of a gated MLP twice that: gate and up
  activated,         // [tokens, intermediate_size]
  router_logits,     // [tokens, num_experts]
  expert_up,         // [tokens * num_experts_per_tok, 2 * intermediate_size]
  expert_activated,  // [tokens * num_experts_per_tok, intermediate_size]
  expert_output,     // [tokens * num_experts_per_tok, hidden_size]
  logits,            // [rows of logits, vocab_size]
};
inline constexpr std::size_t kBuffers = 19;

inline constexpr std::size_t kMaxOperands = 5;  // of an op

// A tensor that an op reads or writes. How often a kernel asks for each byte is lower::Access's.
struct Operand {
  OperandRole role = OperandRole::activation;
  Bytes unique;          // distinct bytes
  Bytes contiguous_run;  // bytes in one piece before the address jumps

  friend bool operator==(const Operand&, const Operand&) = default;
};

// Shapes of a paged attention op, summed over the sequences it serves.
struct AttentionWork {
  int num_sequences = 0;
  int num_query_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;   // of queries and keys
  int value_dim = 0;  // of values
  int block_size = 0;
  int sliding_window = 0;  // tokens that each query sees; 0 = all
  bool in_chunks = false;  // those of its own chunk of sliding_window tokens
  int compress_ratio = 0;  // earlier tokens per entry; beside its window, each query sees the entries; 0: no entries
  int most_entries = 0;    // of them, those that it has chosen, at most; 0: all
  Dtype kv_dtype = Dtype::f16;
  bool has_alibi = false;     // scores get a multiple of the distance
  bool has_soft_cap = false;  // scores become cap * tanh(score / cap)
  bool is_latent = false;     // MLA: a token's key is its latent, whose first values are its value; so are entries
  bool is_paged = true;       // false: K and V lie in a buffer, token after token
  double query_tokens = 0;    // new tokens
  double context_tokens = 0;  // KV tokens that are loaded, each counted once per sequence
  double score_pairs = 0;     // (query token, KV token) pairs that are scored, per query head
  double kv_blocks = 0;       // blocks that hold the context, or into which an op writes
  double padded_tokens = 0;   // context rounded up to whole blocks

  // Values that a KV head loads of a token.
  [[nodiscard]] int loaded_values() const { return is_latent ? head_dim : head_dim + value_dim; }

  friend bool operator==(const AttentionWork&, const AttentionWork&) = default;
};

// What activation_mul computes.
enum class OpActivation : std::uint8_t { silu_and_mul, gelu_and_mul, gelu, plain };

// A product of groups, each with weights of its own: m rows in all, sorted by group. Groups are experts, or the heads
// of MLA's absorbed projections.
struct GroupedWork {
  int count = 0;            // 0: an ordinary product
  double touched = 0;       // groups that get a row, on average
  double longest_rows = 0;  // of the group with the most
  TileCounts tiles{};       // tiles[i]: of 2^i rows

  friend bool operator==(const GroupedWork&, const GroupedWork&) = default;
};

// What devices that share routed experts send each other of a layer, as the device that gets the most sees it. How
// often a row crosses which link is the kernel's (lower/deep_ep).
struct TokenExchange {
  int devices_per_node = 1;
  double expert_rows = 0;    // that the device's experts get: (token, expert) pairs
  double device_tokens = 0;  // distinct tokens of these
  double node_copies = 0;    // of the device's own tokens, one for each other node that they go to

  friend bool operator==(const TokenExchange&, const TokenExchange&) = default;
};

enum class Stage : std::uint8_t { before_layers, layer, after_layers };

struct Op {
  OpKind kind = OpKind::matmul;
  std::string_view name;  // the Hugging Face module's name where there is one: "qkv_proj", "down_proj", ...
  Stage stage = Stage::layer;
  std::uint8_t layer_kind = 0;  // of a layer's op: for which kind of the model's layers
  int count = 1;                // executions in the step; figures below are for one
  WeightSlot weight = WeightSlot::none;
  Buffer input = Buffer::none, output = Buffer::none;
  std::array<Buffer, 2> added{};   // norms: to the residual, before it is normed
  bool adds_layer_before = false;  // norms: what they add is of the layer before; the first layer has none
  // matmul: y[m, n] = x[m, k] w[n, k]^T (+ bias[n]). Other kinds: m rows of n values, k = 0.
  std::int64_t m = 0, n = 0, k = 0;
  WeightFormat weight_format;                            // matmul and embedding
  ActivationMode activations = ActivationMode::exact;    // matmul: exact unless its weights go with the mode asked for
  Dtype activation_dtype = Dtype::f16;                   // what the op reads, multiplies in and writes
  GroupedWork groups;                                    // matmul
  AttentionWork attention;                               // attention kinds, and what policies do for them
  bool rotates = true;                                   // rope_and_cache; false with ALiBi
  bool rotates_part = false;                             // a part of each head, or neighbours: another kernel
  OpActivation activation = OpActivation::silu_and_mul;  // activation_mul
  int devices = 1;                                       // of an exchange: that take part
  TokenExchange exchange;                                // dispatch_tokens, return_tokens
  FlopCount flops;
  std::array<Operand, kMaxOperands> operand_storage;
  int num_operands = 0;

  [[nodiscard]] std::span<const Operand> operands() const {
    return {operand_storage.data(), static_cast<std::size_t>(num_operands)};
  }
  void add(const Operand& operand) { operand_storage[static_cast<std::size_t>(num_operands++)] = operand; }

  // Distinct bytes of all operands: what must cross the memory bus at least once if nothing is cached.
  [[nodiscard]] Bytes unique_bytes() const {
    Bytes total;
    for (const Operand& operand : operands()) total += operand.unique;
    return total;
  }

  friend bool operator==(const Op&, const Op&) = default;
};

// The format that an op asks to multiply in: its activations', or bytes where those are rounded to 8 bits.
[[nodiscard]] Dtype multiplied_in(const Op& op);

}  // namespace dculab
