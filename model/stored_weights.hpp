// What the matrices of a checkpoint are stored in, whatever quantized them: `quantization_config` of config.json.
#pragma once

#include <optional>

#include "core/dtype.hpp"
#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

struct StoredWeights {
  WeightFormat format;                                 // of the layers' matrices that are not plain
  ActivationMode activations = ActivationMode::exact;  // that products with them take where the device has such
  bool lm_head = false;
  bool lm_head_unless_tied = false;  // the file does not name lm_head: a head that is the embedding stays as it is
  PlainParts plain{};
  // fp8: of the blocks that share a scale; 0 where a matrix, or each row of it, has one.
  int block_rows = 0, block_columns = 0;
};

// Of a config.json, by any method that a price knows: gptq, awq, fp8, compressed-tensors with one scheme, mxfp4,
// bitsandbytes. Nothing when the model is not quantized. Throws InputError for other methods.
[[nodiscard]] std::optional<StoredWeights> read_stored_weights(const JsonFields& config);

}  // namespace dculab
