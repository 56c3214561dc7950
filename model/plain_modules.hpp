// Which modules a quantized checkpoint leaves as they are: `modules_to_not_convert` of fp8 and mxfp4, `ignore` of
// compressed-tensors, `llm_int8_skip_modules` of bitsandbytes.
#pragma once

#include "fields/json_fields.hpp"
#include "model/model_shape.hpp"

namespace dculab {

struct PlainModules {
  PlainParts parts;
  bool lm_head = false;
};

// Reads the list `key` of `fields`; nothing is plain where it is missing. Names may be those of modules, globs, or
// regular expressions; norms, routers, embeddings and what is not of the decoder are never quantized and pass. Throws
// InputError for a name of some matrices of a part, or of one layer's: a part has one format in all layers.
[[nodiscard]] PlainModules read_plain_modules(const JsonFields& fields, const char* key);

}  // namespace dculab
