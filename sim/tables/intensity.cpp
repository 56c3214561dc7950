#include "sim/tables/intensity.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/expert_load.hpp"

namespace dculab::sim {
namespace {

// The lecture's sizes: rows of X over the batch, and what each new token attends to.
struct Sizes {
  double hidden_size;
  const LayerKind& layer;
  Phase phase;
  Dtype dtype;
  double batch;
  double new_tokens;  // per sequence
  double context;     // per sequence
  double scored;      // keys that a new token attends to: the context, or a window of it

  [[nodiscard]] double rows() const { return batch * new_tokens; }
  [[nodiscard]] const Heads& heads() const { return layer.gqa().heads; }
};

class TableBuilder {
 public:
  explicit TableBuilder(const Sizes& sizes) : sizes_(sizes) {}

  // y[rows, n] = x[rows, k] w[k, n]
  void projection(int number, std::string_view op, std::string_view computation, double n, double k) {
    const double rows = sizes_.rows();
    add({number,
         op,
         computation,
         FlopCount(2 * rows * n * k),
         values(rows * k + k * n + rows * n),
         {},
         projection_formula(n, k)});
  }

  // A product of each of `groups`: rows in all, weights of their own.
  void grouped(int number, std::string_view op, std::string_view computation, double groups, double rows, double n,
               double k) {
    add({number,
         op,
         computation,
         FlopCount(2 * rows * n * k),
         values(rows * k + groups * k * n + rows * n),
         {},
         LectureFormula::none});
  }

  // Scores and values of heads whose keys and values have other sizes; `kv_heads` of them are read.
  void attention(int number, std::string_view op, std::string_view computation, double heads, double kv_heads,
                 double size) {
    const double pairs = sizes_.batch * heads * sizes_.new_tokens * sizes_.context;
    const double vectors = (sizes_.rows() * heads + sizes_.batch * sizes_.context * kv_heads) * size;
    add({number, op, computation, FlopCount(2 * pairs * size), values(vectors + pairs), {}, LectureFormula::none});
  }

  // Scores read Q and K and write the score matrix; values read the score matrix and V and write Z: the same bytes.
  void attention(int number, std::string_view op, std::string_view computation) {
    const Heads& heads = sizes_.heads();
    const double pairs = sizes_.batch * heads.num_attention_heads * sizes_.new_tokens * sizes_.scored;
    const double keys = decode() ? sizes_.scored : sizes_.context;
    const double vectors = sizes_.rows() * heads.query_width() + sizes_.batch * keys * heads.kv_width();
    const LectureFormula formula = decode() ? LectureFormula::decode_attention : LectureFormula::prefill_attention;
    const bool applies = sixteen_bits() && heads.group_size() == 1 && sizes_.scored == sizes_.context;
    add({number,
         op,
         computation,
         FlopCount(2 * pairs * heads.head_dim),
         values(vectors + pairs),
         {},
         applies ? formula : LectureFormula::none});
  }

  // silu(gate) * up costs about 6 FLOP a value, gelu(gate) * up 9, gelu 8, another plain activation 1: as a plan
  // counts.
  void activation(int number, const Dense& mlp, double rows) {
    const bool gated = mlp.kind == MlpKind::gated, gelu = is_gelu(mlp.activation);
    const double count = rows * mlp.intermediate_size;
    const double each = gated ? (gelu ? 9 : 6) : (gelu ? 8 : 1);
    const std::string_view name = gated ? (gelu ? "gelu_and_mul" : "silu_and_mul") : (gelu ? "gelu" : "activation");
    const std::string_view computation = gated ? (gelu ? "A' = gelu(A_gate) * A_up" : "A' = silu(A_gate) * A_up")
                                               : (gelu ? "A' = gelu(A)" : "A' = relu(A)");
    add({number,
         name,
         computation,
         FlopCount(each * count),
         values((gated ? 3 : 2) * count),
         {},
         LectureFormula::none});
  }

  void view(int number, std::string_view op, std::string_view computation) {
    table_.rows.push_back({number, op, computation, {}, {}, {}, LectureFormula::none});
  }

  [[nodiscard]] IntensityTable finish() {
    table_.total.op = "layer";
    table_.total.phase = sizes_.phase;
    for (IntensityRow& row : table_.rows) row.phase = sizes_.phase;
    table_.total.intensity = table_.total.flops / table_.total.bytes;
    return std::move(table_);
  }

 private:
  [[nodiscard]] bool decode() const { return sizes_.phase == Phase::decode; }
  [[nodiscard]] bool sixteen_bits() const { return bits(sizes_.dtype) == 16; }
  [[nodiscard]] Bytes values(double count) const { return storage(sizes_.dtype, count); }

  [[nodiscard]] LectureFormula projection_formula(double n, double k) const {
    const double hidden = sizes_.hidden_size;
    if (sizes_.batch != 1 || !sixteen_bits()) return LectureFormula::none;
    if (n == hidden && k == hidden) return decode() ? LectureFormula::decode_square : LectureFormula::prefill_square;
    const bool mlp = (n == 4 * hidden && k == hidden) || (n == hidden && k == 4 * hidden);
    if (!mlp) return LectureFormula::none;
    return decode() ? LectureFormula::decode_mlp : LectureFormula::prefill_mlp;
  }

  void add(IntensityRow row) {
    row.intensity = row.flops / row.bytes;
    table_.total.flops += row.flops;
    table_.total.bytes += row.bytes;
    table_.rows.push_back(row);
  }

  Sizes sizes_;
  IntensityTable table_;
};

void add_dense(TableBuilder& table, const Sizes& sizes, int first) {
  const Dense& mlp = sizes.layer.mlp;
  const double hidden = sizes.hidden_size, inner = mlp.intermediate_size;
  if (mlp.kind == MlpKind::gated) {
    table.projection(first, "gate_proj", "A_gate = Out W_gate", inner, hidden);
    table.projection(first, "up_proj", "A_up = Out W_up", inner, hidden);
  } else {
    table.projection(first, "up_proj", "A = Out W_1", inner, hidden);
  }
  table.activation(first + 1, mlp, sizes.rows());
  table.projection(first + 2, "down_proj", "X' = A' W_2", hidden, inner);
}

void add_experts(TableBuilder& table, const Sizes& sizes, int first) {
  const Experts& experts = *sizes.layer.experts;
  const double hidden = sizes.hidden_size, inner = experts.intermediate_size;
  const double rows = sizes.rows() * experts.num_experts_per_tok;
  const double touched = touched_experts({}, experts.num_experts, experts.num_experts_per_tok, sizes.rows());
  table.projection(first, "router", "G = Out W_R", experts.num_experts, hidden);
  if (experts.shared_gate) table.projection(first, "shared_gate", "s = sigmoid(Out w_s)", 1, hidden);
  table.grouped(first + 1, "experts_gate_proj", "A_gate = Out W_gate, of the chosen", touched, rows, inner, hidden);
  table.grouped(first + 1, "experts_up_proj", "A_up = Out W_up, of the chosen", touched, rows, inner, hidden);
  table.activation(first + 2, {.intermediate_size = experts.intermediate_size, .activation = experts.activation}, rows);
  table.grouped(first + 3, "experts_down_proj", "X'_e = A' W_2, of the chosen", touched, rows, hidden, inner);
}

// Rows after attention have the same shape in both tables; `first` is the number of the merge.
void add_output_and_mlp(TableBuilder& table, const Sizes& sizes, int first, double output_width) {
  constexpr int kExpertNumbers = 4;
  table.view(first, "merge", "Z = Merge(Z_1, ..., Z_nh)");
  table.projection(first + 1, "o_proj", "Out = Z W_O", sizes.hidden_size, output_width);
  if (sizes.layer.experts) add_experts(table, sizes, first + 2);
  if (sizes.layer.mlp.intermediate_size > 0)
    add_dense(table, sizes, first + 2 + (sizes.layer.experts ? kExpertNumbers : 0));
}

// Latents: DeepSeek-V2, arXiv:2405.04434, appendix C. C is a latent, R a key that is rotated.
void add_latent_queries(TableBuilder& table, const Sizes& sizes, const Mla& attention) {
  if (attention.q_lora_rank > 0) {
    table.projection(1, "q_a_proj", "C_Q = X W_DQ", attention.q_lora_rank, sizes.hidden_size);
    table.projection(2, "q_b_proj", "Q = C_Q W_UQ", attention.query_width(), attention.q_lora_rank);
  } else {
    table.projection(1, "q_proj", "Q = X W_Q", attention.query_width(), sizes.hidden_size);
  }
  table.projection(3, "kv_a_proj", "C, R = X W_DKV, X W_KR", attention.latent_width(), sizes.hidden_size);
}

void add_latent_prefill(TableBuilder& table, const Sizes& sizes, const Mla& attention) {
  const double heads = attention.num_attention_heads;
  add_latent_queries(table, sizes, attention);
  table.projection(4, "kv_b_proj", "K, V = C W_UK, C W_UV", attention.expanded_width(), attention.kv_lora_rank);
  table.attention(5, "scores", "Score_i = softmax(Q_i [K_i, R]^T / sqrt(H))", heads, heads, attention.qk_head_dim());
  table.attention(6, "values", "Z_i = Score_i V_i", heads, heads, attention.v_head_dim);
  add_output_and_mlp(table, sizes, 7, attention.value_width());
}

void add_latent_decode(TableBuilder& table, const Sizes& sizes, const Mla& attention) {
  const double heads = attention.num_attention_heads, rows = sizes.rows() * heads;
  add_latent_queries(table, sizes, attention);
  table.grouped(4, "absorb_k", "Q'_i = Q_i W_UK,i^T", heads, rows, attention.kv_lora_rank, attention.qk_nope_head_dim);
  table.attention(5, "scores", "Score_i = softmax([Q'_i, Q_R,i] [C, R]^T / sqrt(H))", heads, 1,
                  attention.latent_width());
  table.attention(6, "values", "Z'_i = Score_i C", heads, 1, attention.kv_lora_rank);
  table.grouped(7, "absorb_v", "Z_i = Z'_i W_UV,i", heads, rows, attention.v_head_dim, attention.kv_lora_rank);
  add_output_and_mlp(table, sizes, 8, attention.value_width());
}

// The gate of the output comes from the matrix of the queries.
[[nodiscard]] double query_rows(const Gqa& attention) {
  return (attention.output_gate ? 2.0 : 1.0) * attention.heads.query_width();
}

[[nodiscard]] std::string_view query_computation(const Gqa& attention, bool is_decode) {
  if (attention.output_gate) return is_decode ? "Q_d, Gate_d = T W_Q" : "Q, Gate = X W_Q";
  return is_decode ? "Q_d = T W_Q" : "Q = X W_Q";
}

void add_prefill(TableBuilder& table, const Sizes& sizes) {
  const Heads& heads = sizes.heads();
  const double hidden = sizes.hidden_size;
  const Gqa& attention = sizes.layer.gqa();
  table.projection(1, "q_proj", query_computation(attention, false), query_rows(attention), hidden);
  if (!attention.shares_kv) {
    table.projection(2, "k_proj", "K = X W_K", heads.kv_width(), hidden);
    if (!attention.k_eq_v) table.projection(3, "v_proj", "V = X W_V", heads.kv_width(), hidden);
  }
  table.view(4, "partition_q", "Q_1, ..., Q_nh = Partition(Q)");
  table.view(5, "partition_k", "K_1, ..., K_g = Partition(K)");
  table.view(6, "partition_v", "V_1, ..., V_g = Partition(V)");
  table.attention(7, "scores", "Score_i = softmax(Q_i K_i^T / sqrt(H))");
  table.attention(8, "values", "Z_i = Score_i V_i");
  add_output_and_mlp(table, sizes, 9, heads.query_width());
}

void add_decode(TableBuilder& table, const Sizes& sizes) {
  const Heads& heads = sizes.heads();
  const double hidden = sizes.hidden_size;
  const Gqa& attention = sizes.layer.gqa();
  table.projection(1, "q_proj", query_computation(attention, true), query_rows(attention), hidden);
  if (!attention.shares_kv) {
    table.projection(2, "k_proj", "K_d = T W_K", heads.kv_width(), hidden);
    table.view(3, "concat_k", "K = concat(K_cache, K_d)");
    if (!attention.k_eq_v) table.projection(4, "v_proj", "V_d = T W_V", heads.kv_width(), hidden);
    table.view(5, "concat_v", "V = concat(V_cache, V_d)");
  }
  table.view(6, "partition_q", "Q_1, ..., Q_nh = Partition(Q)");
  table.view(7, "partition_k", "K_1, ..., K_g = Partition(K)");
  table.view(8, "partition_v", "V_1, ..., V_g = Partition(V)");
  table.attention(9, "scores", "Score_i = softmax(Q_i K_i^T / sqrt(H))");
  table.attention(10, "values", "Z_i = Score_i V_i");
  add_output_and_mlp(table, sizes, 11, heads.query_width());
}

}  // namespace

IntensityTable intensity_table(const ModelShape& model, int layer_index, Phase phase, int tokens, int batch,
                               Dtype dtype) {
  const LayerKind& layer = model.layer(layer_index);
  if (layer.delta_net() != nullptr)
    throw InputError("layer " + std::to_string(layer_index) + " of " + model.name +
                     " is a gated delta net, which attends to no tokens; choose a layer of full attention");
  if (layer.compressed() != nullptr)
    throw InputError("layer " + std::to_string(layer_index) + " of " + model.name +
                     " attends to compressed entries, for which there is no table; dculab predict lists its ops");
  const bool decode = phase == Phase::decode;
  const int window = layer.has_kv_heads() ? layer.gqa().sliding_window : 0;
  const double length = tokens;
  const double context = decode ? length + 1 : length;
  const double scored = window == 0 ? context : std::min<double>(context, window);
  const Sizes sizes{static_cast<double>(model.hidden_size),
                    layer,
                    phase,
                    dtype,
                    static_cast<double>(batch),
                    decode ? 1.0 : length,
                    context,
                    scored};
  TableBuilder table(sizes);
  if (const Mla* latent = layer.mla())
    decode ? add_latent_decode(table, sizes, *latent) : add_latent_prefill(table, sizes, *latent);
  else
    decode ? add_decode(table, sizes) : add_prefill(table, sizes);
  return table.finish();
}

}  // namespace dculab::sim
