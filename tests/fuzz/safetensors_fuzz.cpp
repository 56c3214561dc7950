// The checkpoint readers on any bytes: safetensors and config.json either refuse with InputError or give views inside
// the file. Run: safetensors_fuzz tests/fuzz/corpus/safetensors
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "core/error.hpp"
#include "engine/checkpoint/model_config.hpp"
#include "engine/checkpoint/safetensors.hpp"

namespace {

void read_as_safetensors(std::span<const std::byte> contents) {
  try {
    const auto table = dculab::engine::read_tensor_table(contents, "input");
    const std::byte* const end = contents.data() + contents.size();
    for (const auto& [name, tensor] : table)
      if (tensor.bytes.data() < contents.data() || tensor.bytes.data() + tensor.bytes.size() > end) std::abort();
  } catch (const dculab::InputError&) {
  }
}

void read_as_config(std::span<const std::byte> contents) {
  try {
    const std::string text(reinterpret_cast<const char*>(contents.data()), contents.size());
    const auto shape = dculab::engine::parse_model_shape(text, "input", "fuzz");
    if (!problems(shape).empty() || shape.query_width() < 1 || shape.kv_width() < 1) std::abort();
  } catch (const dculab::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span contents(reinterpret_cast<const std::byte*>(data), size);
  read_as_safetensors(contents);
  read_as_config(contents);
  return 0;
}
