// safetensors and config.json, each on all of the input: views lie inside the file, and a shape can be planned with.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "model/model_config.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

using Bytes = std::span<const std::byte>;

void check_tensors(Bytes contents) {
  std::vector<Bytes> tensors;
  for (const auto& [name, tensor] : engine::read_tensor_table(contents, "input")) tensors.push_back(tensor.bytes);
  std::ranges::sort(tensors, {}, [](Bytes bytes) { return std::pair(bytes.data(), bytes.size()); });
  const std::byte* free = contents.data();
  for (const Bytes bytes : tensors) {
    require(bytes.data() >= free, "a tensor begins inside the file, behind the one before it");
    free = bytes.data() + bytes.size();
  }
  require(free <= contents.data() + contents.size(), "a tensor ends inside the file");
}

bool read_as_safetensors(std::string_view input) {
  try {
    check_tensors(std::as_bytes(std::span(input)));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void read_as_config(std::string_view input) {
  const ModelShape shape = parse_model_shape(std::string(input), "input", "fuzz");
  require(problems(shape).empty(), "an accepted shape has no problems");
  require(shape.heads().query_width() >= 1 && shape.heads().kv_width() >= 1, "an accepted shape has heads");
}

}  // namespace

void read_safetensors_and_config(std::string_view input) {
  const bool is_safetensors = read_as_safetensors(input);
  try {
    read_as_config(input);
  } catch (const InputError&) {
    if (!is_safetensors) throw;
  }
}

}  // namespace dculab::fuzz
