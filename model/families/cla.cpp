// Cross-layer attention: Llama whose layers may read the K and V of an earlier one. `kv_source_layers` says whose, for
// each layer; a layer that names another has queries alone.
// Source: Reducing Transformer Key-Value Cache Size with Cross-Layer Attention, arXiv:2405.12981.
#include "model/families/config_fields.hpp"
#include "model/families/families.hpp"

namespace dculab {

void read_cla(const JsonFields& config, ModelShape& shape) {
  LayerKind own = read_like_llama(config, shape, {});
  own.gqa().position = read_rope(config, own.gqa().heads.head_dim);
  own.gqa().qkv_bias = own.gqa().output_bias = config.flag("attention_bias", false);
  own.mlp.bias = config.flag("mlp_bias", false);
  LayerKind sharing = own;
  sharing.gqa().shares_kv = true;
  const int num_layers = read_num_layers(config);
  shape.kv_sources = config.integers("kv_source_layers");
  if (static_cast<int>(shape.kv_sources.size()) != num_layers)
    config.refuse("kv_source_layers", "must name a layer for each of the " + std::to_string(num_layers) + " layers");
  shape.kinds.clear(), shape.layers.clear();
  for (int layer = 0; layer < num_layers; ++layer) {
    const int source = shape.kv_sources[static_cast<std::size_t>(layer)];
    if (source < 0 || source > layer)
      config.refuse("kv_source_layers", "layer " + std::to_string(layer) + " cannot read the KV of layer " +
                                            std::to_string(source) + ": only of an earlier one, or its own");
    add_layer(shape, source == layer ? own : sharing);
  }
}

}  // namespace dculab
