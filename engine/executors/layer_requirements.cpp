#include "engine/executors/layer_requirements.hpp"

#include "core/error.hpp"

namespace dculab::engine {

void require_known_layers(const ModelShape& shape, const std::string& engine) {
  const bool gated_silu = shape.mlp == MlpKind::gated && shape.activation == ActivationKind::silu;
  const bool plain_gelu = shape.mlp == MlpKind::plain && shape.activation != ActivationKind::silu;
  if (!gated_silu && !plain_gelu)
    throw InputError(engine + " runs MLPs that are gated with SiLU (Llama) or plain with GELU (BLOOM, Falcon)");
  if (shape.norm == NormKind::rms_norm && (shape.block != BlockKind::sequential || shape.embedding_norm))
    throw InputError(engine + " runs parallel blocks and a norm of the embedding with LayerNorm only");
}

}  // namespace dculab::engine
