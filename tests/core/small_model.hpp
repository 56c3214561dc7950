// A model of two layers.
#pragma once

#include "model/model_shape.hpp"

namespace dculab {

inline ModelShape small_model() {
  return {.name = "small",
          .hidden_size = 64,
          .vocab_size = 100,
          .max_position_embeddings = 512,
          .kinds = {{.attention = Gqa{.heads = {4, 2, 16}}, .mlp = {128}}},
          .layers = {0, 0}};
}

}  // namespace dculab
