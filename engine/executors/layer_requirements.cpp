#include "engine/executors/layer_requirements.hpp"

#include "core/error.hpp"

namespace dculab::engine {

void require_known_layers(const ModelShape& shape, const std::string& engine) {
  for (const LayerKind& kind : shape.kinds) {
    const Dense& mlp = kind.mlp;
    const bool gated_silu = mlp.kind == MlpKind::gated && mlp.activation == ActivationKind::silu;
    const bool plain_gelu = mlp.kind == MlpKind::plain && mlp.activation != ActivationKind::silu;
    if (!gated_silu && !plain_gelu)
      throw InputError(engine + " runs MLPs that are gated with SiLU (Llama) or plain with GELU (BLOOM, Falcon)");
    if (shape.norm == NormKind::rms_norm && (kind.block != BlockKind::sequential || shape.embedding_norm))
      throw InputError(engine + " runs parallel blocks and a norm of the embedding with LayerNorm only");
    if (kind.attention.heads != shape.heads()) throw InputError(engine + " runs layers that all have the same heads");
  }
}

}  // namespace dculab::engine
