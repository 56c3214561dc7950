// Which modules a quantized checkpoint leaves as they are: `modules_to_not_convert` of fp8 and mxfp4, `ignore` of
// compressed-tensors and what its `targets` leave out, `llm_int8_skip_modules` of bitsandbytes.
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

// What a list of the modules that are quantized leaves as it is: nothing where it has "Linear", the class of all
// matrices. Throws InputError where the list is missing or names no part of the layers, and as above.
[[nodiscard]] PlainModules read_untargeted_modules(const JsonFields& fields, const char* key);

// What either leaves as it is.
[[nodiscard]] PlainModules all_of(const PlainModules& a, const PlainModules& b);

}  // namespace dculab
