#include "tests/engine/support/wide_heads.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "kernels/cpu/packed_weights.hpp"
#include "kernels/reference/stored_value.hpp"

namespace dculab::engine {
namespace {

using kernels::QuantizedMatrix;
using kernels::WeightView;

constexpr int kTimes = 4;
constexpr double kQueryFactor = 2;  // root of kTimes

// What becomes of a matrix.
enum class SpreadAlong : std::uint8_t { rows, columns };

std::size_t product(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

QuantizedMatrix spread_rows(const QuantizedMatrix& from, double factor) {
  QuantizedMatrix to = from;
  to.rows = kTimes * from.rows;
  const std::size_t columns = product(1, from.columns), groups = product(1, from.groups());
  to.q.assign(product(to.rows, from.columns), 128);
  to.scales.assign(product(to.rows, from.groups()), 0.0F);
  to.zeros.assign(to.scales.size(), from.bits == 8 ? 128 : 0);
  if (from.bits != 8) to.q.assign(to.q.size(), 0);
  for (std::size_t row = 0; row < product(1, from.rows); ++row) {
    for (std::size_t i = 0; i < columns; ++i) to.q[kTimes * row * columns + i] = from.q[row * columns + i];
    for (std::size_t i = 0; i < groups; ++i) {
      to.scales[kTimes * row * groups + i] = static_cast<float>(factor * from.scales[row * groups + i]);
      to.zeros[kTimes * row * groups + i] = from.zeros[row * groups + i];
    }
  }
  return to;
}

// In-feature 4 i + j goes to group 4 g + j, where g is the group of i; a single group stays single.
QuantizedMatrix spread_columns(const QuantizedMatrix& from) {
  const bool is_single = from.groups() == 1;
  QuantizedMatrix to = from;
  to.columns = kTimes * from.columns;
  if (is_single) to.group_size = to.columns;
  const std::size_t from_groups = product(1, from.groups()), to_groups = product(1, to.groups());
  to.q.resize(product(to.rows, to.columns));
  to.scales.assign(product(to.rows, to.groups()), 0.0F);
  to.zeros.resize(to.scales.size());
  to.g_idx.clear();
  for (int i = 0; i < to.columns && !is_single; ++i) to.g_idx.push_back(kTimes * from.group(i / kTimes) + i % kTimes);
  for (std::size_t row = 0; row < product(1, to.rows); ++row) {
    for (std::size_t group = 0; group < to_groups; ++group) {
      const std::size_t source = row * from_groups + (is_single ? 0 : group / kTimes);
      to.scales[row * to_groups + group] = from.scales[source];
      to.zeros[row * to_groups + group] = from.zeros[source];
    }
    for (int i = 0; i < to.columns; ++i)
      to.q[row * product(1, to.columns) + product(1, i)] =
          i % kTimes == 0 ? from.q[row * product(1, from.columns) + product(1, i / kTimes)]
                          : to.zeros[row * to_groups + product(1, to.group(i))];
  }
  return to;
}

class Widener {
 public:
  explicit Widener(ModelWeights& weights) : weights_(weights) {}

  // `columns` of the view; a bias has one.
  void spread(WeightView& view, int columns, SpreadAlong spread, double factor) {
    if (view.data == nullptr) return;
    if (view.dtype == Dtype::int4 || view.dtype == Dtype::int8)
      spread_packed(view, columns, spread, factor);
    else
      spread_values(view, columns, spread, factor);
  }

 private:
  template <typename T>
  T* keep(std::vector<T> values) {
    auto kept = std::make_shared<std::vector<T>>(std::move(values));
    T* data = kept->data();
    weights_.memory.emplace_back(std::move(kept));
    return data;
  }

  // Four times as many rows, or four times as many columns: either way value i of rows of `step` values moves to 4 i.
  void spread_values(WeightView& view, int columns, SpreadAlong spread, double factor) {
    const std::size_t step = spread == SpreadAlong::rows ? product(1, columns) : 1;
    const std::size_t pieces = product(view.rows, columns) / step;
    std::byte* values = keep(std::vector<std::byte>(kTimes * pieces * step * product(1, bits(view.dtype)) / 8));
    for (std::size_t piece = 0; piece < pieces; ++piece)
      for (std::size_t i = 0; i < step; ++i)
        kernels::reference::store_value(
            values, view.dtype, kTimes * piece * step + i,
            factor * kernels::reference::load_value(view.data, view.dtype, piece * step + i));
    view.data = values;
    if (spread == SpreadAlong::rows) view.rows *= kTimes;
  }

  void spread_packed(WeightView& view, int columns, SpreadAlong spread, double factor) {
    const QuantizedMatrix matrix = kernels::cpu::unpack_weights(view, columns);
    const QuantizedMatrix wide = spread == SpreadAlong::rows ? spread_rows(matrix, factor) : spread_columns(matrix);
    const std::int32_t* order = spread == SpreadAlong::rows ? view.permutation : nullptr;
    if (spread == SpreadAlong::columns)
      if (auto sorted = kernels::cpu::group_order(wide); !sorted.empty()) order = keep(std::move(sorted));
    constexpr std::size_t kLine = 64;
    std::byte* memory = keep(std::vector<std::byte>(
        kernels::cpu::packed_bytes(wide.rows, wide.columns, wide.bits, wide.group_size) + kLine));
    memory += (kLine - reinterpret_cast<std::uintptr_t>(memory) % kLine) % kLine;
    view = kernels::cpu::pack_weights(wide, order, memory);
  }

  ModelWeights& weights_;
};

}  // namespace

ModelWeights with_wide_heads(const ModelWeights& weights) {
  ModelWeights wide = weights;
  const int hidden = weights.shape.hidden_size, query_width = weights.shape.heads().query_width();
  for (LayerKind& kind : wide.shape.kinds) {
    kind.gqa().heads.head_dim *= kTimes;
    kind.gqa().position.rotary_dim *= kTimes;
  }
  Widener widener(wide);
  for (WeightSlots& layer : wide.layers) {
    // Twice as large, the values of a head have the mean square that they had among fewer; their norm is then twice as
    // large, which is what queries need, and keys do not.
    SlotWeights& norms = layer[WeightSlot::qk_norm];
    const double key_factor = norms.count > 0 ? kQueryFactor : 1;
    widener.spread(norms.weights[kQ], 1, SpreadAlong::rows, 1);
    widener.spread(norms.weights[kK], 1, SpreadAlong::rows, 1 / key_factor);
    widener.spread(layer[WeightSlot::qkv_proj].weights[kQ], hidden, SpreadAlong::rows, kQueryFactor);
    widener.spread(layer[WeightSlot::qkv_proj].weights[kK], hidden, SpreadAlong::rows, key_factor);
    widener.spread(layer[WeightSlot::qkv_proj].weights[kV], hidden, SpreadAlong::rows, 1);
    widener.spread(layer[WeightSlot::qkv_proj].biases[kQ], 1, SpreadAlong::rows, kQueryFactor);
    widener.spread(layer[WeightSlot::qkv_proj].biases[kK], 1, SpreadAlong::rows, key_factor);
    widener.spread(layer[WeightSlot::qkv_proj].biases[kV], 1, SpreadAlong::rows, 1);
    SlotWeights& output = layer[WeightSlot::o_proj];
    widener.spread(output.weights[0], query_width, SpreadAlong::columns, 1);
    output.columns = kTimes * query_width;
  }
  return wide;
}

}  // namespace dculab::engine
