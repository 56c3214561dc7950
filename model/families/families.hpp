// How each family of models says its shape in config.json, and what of it the engine does not run.
#pragma once

#include <string>
#include <vector>

#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

// Each fills everything but name and dtype, with the defaults of transformers' configuration of that family where
// config.json is silent. Throws InputError: file, line, what is not supported.
void read_baichuan(const JsonFields& config, ModelShape& shape);
void read_bloom(const JsonFields& config, ModelShape& shape);
void read_cla(const JsonFields& config, ModelShape& shape);
void read_deepseek_v2(const JsonFields& config, ModelShape& shape);
void read_deepseek_v3(const JsonFields& config, ModelShape& shape);
void read_deepseek_v4(const JsonFields& config, ModelShape& shape);
void read_falcon(const JsonFields& config, ModelShape& shape);
void read_gemma2(const JsonFields& config, ModelShape& shape);
void read_gemma3_text(const JsonFields& config, ModelShape& shape);
void read_gemma4(const JsonFields& config, ModelShape& shape);
void read_gemma4_unified(const JsonFields& config, ModelShape& shape);
void read_glm4(const JsonFields& config, ModelShape& shape);
void read_glm4_moe(const JsonFields& config, ModelShape& shape);
void read_gpt_neox(const JsonFields& config, ModelShape& shape);
void read_granite(const JsonFields& config, ModelShape& shape);
void read_internlm2(const JsonFields& config, ModelShape& shape);
void read_gpt_oss(const JsonFields& config, ModelShape& shape);
void read_llama(const JsonFields& config, ModelShape& shape);
void read_llama4(const JsonFields& config, ModelShape& shape);
void read_minimax_m2(const JsonFields& config, ModelShape& shape);
void read_mistral(const JsonFields& config, ModelShape& shape);
void read_mixtral(const JsonFields& config, ModelShape& shape);
void read_olmo2(const JsonFields& config, ModelShape& shape);
void read_opt(const JsonFields& config, ModelShape& shape);
void read_phi3(const JsonFields& config, ModelShape& shape);
void read_qwen2(const JsonFields& config, ModelShape& shape);
void read_qwen2_moe(const JsonFields& config, ModelShape& shape);
void read_qwen3(const JsonFields& config, ModelShape& shape);
void read_qwen3_5(const JsonFields& config, ModelShape& shape);
void read_qwen3_5_moe(const JsonFields& config, ModelShape& shape);
void read_qwen3_moe(const JsonFields& config, ModelShape& shape);
void read_qwen3_next(const JsonFields& config, ModelShape& shape);
void read_starcoder2(const JsonFields& config, ModelShape& shape);

// The same of a model that is part of another, whose configuration leaves out the sizes that its class has by default.
void read_llama_inside(const JsonFields& config, ModelShape& shape);
void read_mistral_inside(const JsonFields& config, ModelShape& shape);

// A dense decoder of a family that is not known, `model_type`: what most of them are, with a note that says what was
// assumed. Throws InputError where a size is missing.
void read_unknown_dense(const JsonFields& config, const std::string& model_type, ModelShape& shape);

// What a configuration has that no dense decoder has, in words: "mamba layers in 36 of 48". Empty where it may be one.
[[nodiscard]] std::vector<std::string> parts_beyond_dense(const JsonFields& config);

// The same of what its `architectures` are for, or where these are missing, of what its model_type names.
[[nodiscard]] std::string other_task(const JsonFields& config);

// 1 for each layer that rotates queries and keys, and 0 for the others, whatever its name says: SmolLM3, Llama 4.
inline constexpr const char* kNoRopeLayers = "no_rope_layers";

// The name of the shipped model whose size comes nearest, with routed experts where this one has them.
[[nodiscard]] std::string nearest_priced_model(const JsonFields& config);

// The model_type of a configuration that adds groups to one of `grouped_model_type`; ours.
inline constexpr const char* kGroupedType = "dculab_grouped";

// Gives the layers that a family has read the groups of query heads that the configuration lists.
void read_head_groups(const JsonFields& config, ModelShape& shape);

}  // namespace dculab
