// How each family of models says its shape in config.json, and what of it the engine does not run.
#pragma once

#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Each fills everything but name and dtype, with the defaults of transformers' configuration of that family where
// config.json is silent. Throws InputError: file, line, what is not supported.
void read_bloom(const JsonFields& config, ModelShape& shape);
void read_falcon(const JsonFields& config, ModelShape& shape);
void read_gemma2(const JsonFields& config, ModelShape& shape);
void read_gemma3_text(const JsonFields& config, ModelShape& shape);
void read_glm4(const JsonFields& config, ModelShape& shape);
void read_glm4_moe(const JsonFields& config, ModelShape& shape);
void read_llama(const JsonFields& config, ModelShape& shape);
void read_mistral(const JsonFields& config, ModelShape& shape);
void read_mixtral(const JsonFields& config, ModelShape& shape);
void read_olmo2(const JsonFields& config, ModelShape& shape);
void read_phi3(const JsonFields& config, ModelShape& shape);
void read_qwen2(const JsonFields& config, ModelShape& shape);
void read_qwen2_moe(const JsonFields& config, ModelShape& shape);
void read_qwen3(const JsonFields& config, ModelShape& shape);
void read_qwen3_moe(const JsonFields& config, ModelShape& shape);

}  // namespace dculab
