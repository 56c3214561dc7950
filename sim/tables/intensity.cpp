#include "sim/tables/intensity.hpp"

#include <algorithm>
#include <utility>

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
  [[nodiscard]] const Heads& heads() const { return layer.attention.heads; }
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
  void activation(int number) {
    const Dense& mlp = sizes_.layer.mlp;
    const bool gated = mlp.kind == MlpKind::gated, gelu = is_gelu(mlp.activation);
    const double count = sizes_.rows() * mlp.intermediate_size;
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

// Rows after attention have the same shape in both tables; `first` is the number of the merge.
void add_output_and_mlp(TableBuilder& table, const Sizes& sizes, int first) {
  const Dense& mlp = sizes.layer.mlp;
  const double hidden = sizes.hidden_size, inner = mlp.intermediate_size;
  table.view(first, "merge", "Z = Merge(Z_1, ..., Z_nh)");
  table.projection(first + 1, "o_proj", "Out = Z W_O", hidden, sizes.heads().query_width());
  if (mlp.kind == MlpKind::gated) {
    table.projection(first + 2, "gate_proj", "A_gate = Out W_gate", inner, hidden);
    table.projection(first + 2, "up_proj", "A_up = Out W_up", inner, hidden);
  } else {
    table.projection(first + 2, "up_proj", "A = Out W_1", inner, hidden);
  }
  table.activation(first + 3);
  table.projection(first + 4, "down_proj", "X' = A' W_2", hidden, inner);
}

void add_prefill(TableBuilder& table, const Sizes& sizes) {
  const Heads& heads = sizes.heads();
  const double hidden = sizes.hidden_size;
  table.projection(1, "q_proj", "Q = X W_Q", heads.query_width(), hidden);
  table.projection(2, "k_proj", "K = X W_K", heads.kv_width(), hidden);
  table.projection(3, "v_proj", "V = X W_V", heads.kv_width(), hidden);
  table.view(4, "partition_q", "Q_1, ..., Q_nh = Partition(Q)");
  table.view(5, "partition_k", "K_1, ..., K_g = Partition(K)");
  table.view(6, "partition_v", "V_1, ..., V_g = Partition(V)");
  table.attention(7, "scores", "Score_i = softmax(Q_i K_i^T / sqrt(H))");
  table.attention(8, "values", "Z_i = Score_i V_i");
  add_output_and_mlp(table, sizes, 9);
}

void add_decode(TableBuilder& table, const Sizes& sizes) {
  const Heads& heads = sizes.heads();
  const double hidden = sizes.hidden_size;
  table.projection(1, "q_proj", "Q_d = T W_Q", heads.query_width(), hidden);
  table.projection(2, "k_proj", "K_d = T W_K", heads.kv_width(), hidden);
  table.view(3, "concat_k", "K = concat(K_cache, K_d)");
  table.projection(4, "v_proj", "V_d = T W_V", heads.kv_width(), hidden);
  table.view(5, "concat_v", "V = concat(V_cache, V_d)");
  table.view(6, "partition_q", "Q_1, ..., Q_nh = Partition(Q)");
  table.view(7, "partition_k", "K_1, ..., K_g = Partition(K)");
  table.view(8, "partition_v", "V_1, ..., V_g = Partition(V)");
  table.attention(9, "scores", "Score_i = softmax(Q_i K_i^T / sqrt(H))");
  table.attention(10, "values", "Z_i = Score_i V_i");
  add_output_and_mlp(table, sizes, 11);
}

}  // namespace

IntensityTable intensity_table(const ModelShape& model, Phase phase, int tokens, int batch, Dtype dtype) {
  const LayerKind& layer = model.kinds.front();
  const bool decode = phase == Phase::decode;
  const int window = layer.attention.sliding_window;
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
  if (decode)
    add_decode(table, sizes);
  else
    add_prefill(table, sizes);
  return table.finish();
}

}  // namespace dculab::sim
