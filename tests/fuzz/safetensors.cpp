// safetensors and config.json, each on all of the input: views lie inside the file, and a shape can be planned with.
#include <cstddef>
#include <span>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

void read_as_safetensors(std::string_view input) {
  const auto contents = std::as_bytes(std::span(input));
  try {
    std::size_t covered = 0;
    const std::byte* const end = contents.data() + contents.size();
    for (const auto& [name, tensor] : engine::read_tensor_table(contents, "input")) {
      const bool inside = tensor.bytes.data() >= contents.data() && tensor.bytes.data() + tensor.bytes.size() <= end;
      require(inside, "a tensor lies inside the file");
      covered += tensor.bytes.size();
    }
    require(covered < contents.size(), "no byte belongs to two tensors");
  } catch (const InputError&) {
  }
}

void read_as_config(std::string_view input) {
  const ModelShape shape = engine::parse_model_shape(std::string(input), "input", "fuzz");
  require(problems(shape).empty(), "an accepted shape has no problems");
  require(shape.query_width() >= 1 && shape.kv_width() >= 1, "an accepted shape has heads");
}

}  // namespace

void read_safetensors_and_config(std::string_view input) {
  read_as_safetensors(input);
  read_as_config(input);
}

}  // namespace dculab::fuzz
