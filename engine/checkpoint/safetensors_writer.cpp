#include "engine/checkpoint/safetensors_writer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/checkpoint/safetensors.hpp"
#include "files/output.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kHeaderAlignment = 8;

[[nodiscard]] std::uint64_t value_bytes(const TensorToWrite& tensor) { return dtype_bytes(tensor.dtype).value_or(0); }

void require_consistent(const std::vector<TensorToWrite>& tensors) {
  std::set<std::string> names;
  for (const TensorToWrite& tensor : tensors) {
    std::uint64_t bytes = value_bytes(tensor);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    if (value_bytes(tensor) == 0 || bytes != tensor.bytes.size())
      throw std::invalid_argument("write_safetensors: '" + tensor.name + "' has another size than its shape");
    if (!names.insert(tensor.name).second)
      throw std::invalid_argument("write_safetensors: two tensors are called '" + tensor.name + "'");
  }
}

// Length and header; blanks fill it up, so that the data are aligned.
[[nodiscard]] std::string make_header(const std::vector<TensorToWrite>& tensors) {
  nlohmann::ordered_json entries;
  entries["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::size_t end = offset + tensor.bytes.size();
    entries[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = entries.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  std::string length(sizeof(std::uint64_t), '\0');
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xFFU);
  return length + text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors) {
  require_consistent(tensors);
  std::ranges::sort(tensors, [](const TensorToWrite& a, const TensorToWrite& b) {
    return std::pair{value_bytes(b), a.name} < std::pair{value_bytes(a), b.name};
  });
  files::GrowingFile file(path.string());
  file.write(make_header(tensors));
  for (const TensorToWrite& tensor : tensors)
    file.write({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  file.keep();
}

}  // namespace dculab::engine
