#include "model/kv/kv_bytes.hpp"

#include <algorithm>

#include "core/kv/table.hpp"
#include "model/kv/kv_plans.hpp"

namespace dculab {
namespace {

// Of one layer.
[[nodiscard]] Bytes kv_bytes(const Gqa& attention, Dtype dtype) {
  return attention.shares_kv ? Bytes()
                             : kv_storage(dtype, 2.0 * attention.heads.kv_width(), attention.heads.head_dim,
                                          attention.heads.num_key_value_heads);
}
[[nodiscard]] Bytes kv_bytes(const Mla& attention, Dtype dtype) {
  return kv_storage(dtype, attention.latent_width(), attention.latent_width());
}
[[nodiscard]] Bytes kv_bytes(const GatedDeltaNet& /*net*/, Dtype /*dtype*/) { return {}; }
[[nodiscard]] Bytes kv_bytes(const CompressedAttention& attention, Dtype dtype) {
  if (attention.compress_ratio == 0) return {};
  return kv_storage(dtype, attention.entry_width(), attention.entry_width()) / attention.compress_ratio;
}

}  // namespace

Bytes kv_bytes_per_token(const ModelShape& model, Dtype kv_cache_dtype) {
  Bytes bytes;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    bytes += std::visit([&](const auto& attention) { return kv_bytes(attention, kv_cache_dtype); },
                        model.kinds[kind].attention) *
             model.num_layers(kind);
  return bytes;
}

Bytes kv_bytes_beside_block(const ModelShape& model, RetentionPolicy policy) {
  const auto beside = kv_policy_plan(policy).bytes_beside_block;
  Bytes bytes;
  for (std::size_t kind = 0; kind < model.kinds.size() && beside != nullptr; ++kind)
    if (model.kinds[kind].has_kv_heads() && !model.kinds[kind].gqa().shares_kv)
      bytes += beside(model.kinds[kind].gqa()) * model.num_layers(kind);
  return bytes;
}

Bytes kv_block_bytes(const ModelShape& model, const EngineOptions& options) {
  return kv_bytes_per_token(model, options.kv_cache_dtype) * options.block_size +
         kv_bytes_beside_block(model, options.kv_retention.policy);
}

Bytes kv_residual_bytes(const ModelShape& model, Dtype kv_cache_dtype, int residual_tokens) {
  if (quantizes_together(kv_cache_dtype)) return kv_bytes_per_token(model, Dtype::f16) * residual_tokens;
  Bytes windows;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    if (const CompressedAttention* attention = model.kinds[kind].compressed())
      windows += kv_storage(kv_cache_dtype, static_cast<double>(attention->sliding_window) * attention->head_dim,
                            attention->head_dim) *
                 model.num_layers(kind);
  return windows;
}

Bytes recurrent_state_bytes(const ModelShape& model) {
  Bytes bytes;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind)
    if (const CompressedAttention* attention = model.kinds[kind].compressed())
      bytes += storage(model.dtype, attention->open_entry_values()) * model.num_layers(kind);
    else if (const GatedDeltaNet* net = model.kinds[kind].delta_net())
      bytes += (storage(Dtype::f32, net->state_values()) +
                storage(model.dtype, static_cast<double>(net->conv_kernel - 1) * net->conv_width())) *
               model.num_layers(kind);
  return bytes;
}

KvDemand kv_demand(const ModelShape& model, Dtype kv_cache_dtype, bool frees_windows) {
  const Bytes of_token = kv_bytes_per_token(model, kv_cache_dtype);
  if (of_token <= Bytes()) return {};
  const Bytes windows = quantizes_together(kv_cache_dtype) ? Bytes() : kv_residual_bytes(model, kv_cache_dtype, 0);
  KvDemand demand{.state_tokens = (recurrent_state_bytes(model) + windows) / of_token};
  if (!frees_windows) return demand;
  Bytes freed;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    const LayerKind& layers = model.kinds[kind];
    if (!layers.has_kv_heads() || layers.gqa().sliding_window == 0) continue;
    demand.window = std::max(demand.window, layers.gqa().sliding_window);
    freed += kv_bytes(layers.gqa(), kv_cache_dtype) * model.num_layers(kind);
  }
  demand.beyond = 1 - freed / of_token;
  return demand;
}

}  // namespace dculab
