#include "engine/checkpoint/safetensors_writer.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/checkpoint/safetensors.hpp"
#include "fields/json_text.hpp"
#include "files/output.hpp"

namespace dculab::engine {
namespace {

constexpr std::size_t kHeaderAlignment = 8;

[[nodiscard]] std::uint64_t value_bytes(const TensorToWrite& tensor) { return dtype_bytes(tensor.dtype).value_or(0); }

void require_consistent(const std::vector<TensorToWrite>& tensors) {
  std::set<std::string> names{"__metadata__"};
  for (const TensorToWrite& tensor : tensors) {
    std::uint64_t bytes = value_bytes(tensor);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    if (value_bytes(tensor) == 0 || bytes != tensor.bytes.size())
      throw std::invalid_argument("write_safetensors: '" + tensor.name + "' has another size than its shape");
    if (!names.insert(tensor.name).second)
      throw std::invalid_argument("write_safetensors: two tensors are called '" + tensor.name + "'");
  }
}

[[nodiscard]] Node node_of(NodeKind kind) {
  Node node;
  node.kind = kind;
  return node;
}

[[nodiscard]] Node scalar_of(ScalarType type, std::string text) {
  Node node = node_of(NodeKind::scalar);
  node.type = type;
  node.text = std::move(text);
  return node;
}

template <class Number>
[[nodiscard]] Node list_of(const std::vector<Number>& numbers) {
  Node list = node_of(NodeKind::list);
  for (const Number number : numbers) list.children.push_back(scalar_of(ScalarType::integer, std::to_string(number)));
  return list;
}

// The caller sees to it that no key stands twice: a search for each would take too long.
void add_member(Node& map, std::string key, Node value) {
  value.key = std::move(key);
  map.children.push_back(std::move(value));
}

// Length and header; blanks fill it up, so that the data are aligned.
[[nodiscard]] std::string make_header(const std::vector<TensorToWrite>& tensors) {
  Node entries = node_of(NodeKind::map), metadata = node_of(NodeKind::map);
  add_member(metadata, "format", scalar_of(ScalarType::text, "pt"));
  add_member(entries, "__metadata__", std::move(metadata));
  std::size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::size_t end = offset + tensor.bytes.size();
    Node entry = node_of(NodeKind::map);
    add_member(entry, "dtype", scalar_of(ScalarType::text, tensor.dtype));
    add_member(entry, "shape", list_of(tensor.shape));
    add_member(entry, "data_offsets", list_of(std::vector{offset, end}));
    add_member(entries, tensor.name, std::move(entry));
    offset = end;
  }
  std::string text = json_text(entries);
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
