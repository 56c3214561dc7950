// Headers of models in GGUF: one that is read makes a configuration, which makes a shape or says what is missing.
#include "model/folder/gguf_header.hpp"

#include <string>

#include "model/folder/gguf_config.hpp"
#include "model/model_config.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {

void read_gguf_model(std::string_view input) {
  const GgufHeader header = parse_gguf_header("fuzz.gguf", input);
  ModelShape shape = parse_model_shape(gguf_config(header, "fuzz.gguf"), "fuzz.gguf", "fuzz");
  set_gguf_weights(header, shape);
  require(shape.num_layers() >= 1, "a shape has layers");
}

}  // namespace dculab::fuzz
