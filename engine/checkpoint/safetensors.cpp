#include "engine/checkpoint/safetensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "fields/json_fields.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the safetensors library
constexpr std::size_t kMostTensors = 1'000'000;

// Formats whose values fill whole bytes; the sub-byte ones (F4, F6) are refused as unknown.
constexpr std::array<std::pair<std::string_view, int>, 16> kDtypeBytes{{{"BOOL", 1},
                                                                        {"U8", 1},
                                                                        {"I8", 1},
                                                                        {"F8_E5M2", 1},
                                                                        {"F8_E4M3", 1},
                                                                        {"F8_E8M0", 1},
                                                                        {"I16", 2},
                                                                        {"U16", 2},
                                                                        {"F16", 2},
                                                                        {"BF16", 2},
                                                                        {"I32", 4},
                                                                        {"U32", 4},
                                                                        {"F32", 4},
                                                                        {"F64", 8},
                                                                        {"I64", 8},
                                                                        {"U64", 8}}};

// Reads one entry of the header. `file` says where a mistake is.
class EntryReader {
 public:
  EntryReader(const std::string& file, const Node& entry) : file_(file), entry_(entry) {
    if (entry.kind != NodeKind::map) refuse("must be an object with dtype, shape and data_offsets");
    if (entry.children.size() != 3) refuse("must have dtype, shape and data_offsets and nothing else");
  }

  [[nodiscard]] StoredTensor read(std::span<const std::byte> data) const {
    StoredTensor tensor{.dtype = read_dtype(), .shape = read_shape(), .bytes = {}};
    const std::uint64_t expected = byte_count(tensor);
    const auto [begin, end] = read_offsets();
    if (begin > end) refuse("has data_offsets that end before they begin");
    if (end > data.size())
      refuse("ends at byte " + std::to_string(end) + " of the data, but the file holds only " +
             std::to_string(data.size()) + " (truncated?); download it again");
    if (end - begin != expected)
      refuse("spans " + std::to_string(end - begin) + " bytes, but " + tensor.dtype + " " + to_string(tensor.shape) +
             " needs " + std::to_string(expected));
    tensor.bytes = data.subspan(begin, end - begin);
    return tensor;
  }

 private:
  [[nodiscard]] const Node& field(const char* key) const {
    const Node* found = entry_.find(key);
    if (found == nullptr) refuse(std::string("has no ") + key);
    return *found;
  }

  [[nodiscard]] std::string read_dtype() const {
    const Node& dtype = field("dtype");
    if (!dtype.is(ScalarType::text)) refuse("has a dtype that is not a string");
    return dtype.text;
  }

  [[nodiscard]] std::vector<std::int64_t> read_shape() const {
    const Node& shape = field("shape");
    if (shape.kind != NodeKind::list) refuse("has a shape that is not a list");
    std::vector<std::int64_t> sizes;
    for (const Node& size : shape.children) {
      const auto number = count<std::int64_t>(size);
      if (!number) refuse("has a shape with something else than sizes");
      sizes.push_back(*number);
    }
    return sizes;
  }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> read_offsets() const {
    const Node& offsets = field("data_offsets");
    const bool is_pair = offsets.kind == NodeKind::list && offsets.children.size() == 2;
    const auto begin = is_pair ? count<std::uint64_t>(offsets.children[0]) : std::nullopt;
    const auto end = is_pair ? count<std::uint64_t>(offsets.children[1]) : std::nullopt;
    if (!begin || !end) refuse("has data_offsets that are not [begin, end]");
    return {*begin, *end};
  }

  // A whole number that is not negative.
  template <class T>
  [[nodiscard]] static std::optional<T> count(const Node& node) {
    const std::optional<T> number = integer_of<T>(node);
    return number && *number >= 0 ? number : std::nullopt;
  }

  [[nodiscard]] std::uint64_t byte_count(const StoredTensor& tensor) const {
    const auto bytes = dtype_bytes(tensor.dtype);
    if (!bytes) refuse("has the unknown dtype " + in_quotes(tensor.dtype));
    std::uint64_t total = *bytes;
    for (const std::int64_t size : tensor.shape)
      if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(size), &total))
        refuse("has a shape " + to_string(tensor.shape) + " whose size overflows 64 bits");
    return total;
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw InputError(file_, "tensor " + in_quotes(entry_.key) + " " + message);
  }

  const std::string& file_;
  const Node& entry_;
};

// The header's text and the data behind it.
std::pair<std::string_view, std::span<const std::byte>> split(std::span<const std::byte> contents,
                                                              const std::string& file) {
  if (contents.size() < kLengthBytes)
    throw InputError(file, "is too short to be a safetensors file (" + std::to_string(contents.size()) + " bytes)");
  std::uint64_t length = 0;
  for (std::uint64_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(contents[i]) << (8 * i);
  if (length > kMaxHeaderBytes)
    throw InputError(file, "claims a header of " + std::to_string(length) + " bytes (the limit is " +
                               std::to_string(kMaxHeaderBytes) + "); it is not a safetensors file");
  if (length > contents.size() - kLengthBytes)
    throw InputError(file, "claims a header of " + std::to_string(length) + " bytes, but only " +
                               std::to_string(contents.size() - kLengthBytes) +
                               " follow (truncated?); download it again");
  const auto header = contents.subspan(kLengthBytes, length);
  return {{reinterpret_cast<const char*>(header.data()), header.size()}, contents.subspan(kLengthBytes + length)};
}

// Tensors must cover the data exactly: no byte twice, none left over.
void require_tiling(const TensorTable& table, std::span<const std::byte> data, const std::string& file) {
  std::vector<const TensorTable::value_type*> order;
  for (const auto& entry : table) order.push_back(&entry);
  const auto range = [&](const TensorTable::value_type* entry) {
    const auto begin = static_cast<std::size_t>(entry->second.bytes.data() - data.data());
    return std::pair{begin, begin + entry->second.bytes.size()};
  };
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return range(a) < range(b); });
  std::size_t covered = 0;
  for (const auto* entry : order) {
    const auto [begin, end] = range(entry);
    if (begin != covered)
      throw InputError(file, "tensor " + in_quotes(entry->first) + " begins at byte " + std::to_string(begin) +
                                 " of the data, but the tensors before it end at " + std::to_string(covered) +
                                 (begin < covered ? " (overlap)" : " (hole)"));
    covered = end;
  }
  if (covered != data.size())
    throw InputError(file, std::to_string(data.size() - covered) + " bytes after the last tensor belong to none");
}

}  // namespace

std::optional<std::uint64_t> dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypeBytes)
    if (name == dtype) return static_cast<std::uint64_t>(bytes);
  return std::nullopt;
}

std::string to_string(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

TensorTable read_tensor_table(std::span<const std::byte> contents, const std::string& file) {
  const auto [header, data] = split(contents, file);
  TensorTable table;
  // Clang 14 captures no structured binding by reference.
  const auto read_entry = [&, data = data](const Node& entry) {
    if (entry.key == "__metadata__") return;
    if (table.size() == kMostTensors) throw InputError(file, "has more than 1,000,000 tensors; is it the right file?");
    table.emplace(entry.key, EntryReader(file, entry).read(data));
  };
  const Node root = read_json_items(file, one_piece(header), {.kind = NodeKind::map}, read_entry);
  if (root.kind != NodeKind::map) throw InputError(file, "has a header that is not a JSON object");
  require_tiling(table, data, file);
  return table;
}

Checkpoint::Checkpoint(const std::filesystem::path& folder) {
  const auto single = folder / "model.safetensors";
  const auto index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) {
    name_ = single.string();
    const Shard& shard = open_shard(single);
    for (const auto& entry : shard.tensors) owner_.emplace(entry.first, &shard);
  } else if (std::filesystem::exists(index)) {
    name_ = index.string();
    open_indexed(folder, index);
  } else {
    throw InputError(folder.string(),
                     "holds no weights (neither model.safetensors nor model.safetensors.index.json); "
                     "pickled .bin files are not read: convert them to safetensors");
  }
}

Checkpoint::Shard& Checkpoint::open_shard(const std::filesystem::path& path) {
  auto shard = std::make_unique<Shard>(Shard{.path = path.string(), .file = MappedFile(path), .tensors = {}});
  shard->tensors = read_tensor_table(shard->file.bytes(), shard->path);
  shards_.push_back(std::move(shard));
  return *shards_.back();
}

void Checkpoint::open_indexed(const std::filesystem::path& folder, const std::filesystem::path& index) {
  const JsonFields fields(index.string(), read_model_text(index.string()));
  const auto weight_map = fields.object("weight_map");
  if (!weight_map) throw InputError(index.string(), "has no weight_map");
  std::map<std::string, const Shard*> by_file;
  for (const Node& member : weight_map->members()) {
    if (!member.is(ScalarType::text)) weight_map->refuse(member, "must be a string");
    const std::string& tensor = member.key;
    const std::string& file = member.text;
    if (file.empty() || file.find('/') != std::string::npos || file.find('\\') != std::string::npos)
      weight_map->refuse(member, "must name a file beside the index, not " + in_quotes(file));
    const auto [entry, is_new] = by_file.try_emplace(file, nullptr);
    if (is_new) {
      std::error_code problem;  // a name that is too long for a file
      if (!std::filesystem::exists(folder / file, problem))
        weight_map->refuse(member, "is in the shard " + in_quotes(file) + ", which is missing" +
                                       (problem ? " (" + problem.message() + ")" : "") + "; download it again");
      entry->second = &open_shard(folder / file);
    }
    if (!entry->second->tensors.contains(tensor))
      weight_map->refuse(member, "is not in the shard " + in_quotes(file) + " that should hold it");
    owner_.emplace(tensor, entry->second);
  }
}

Checkpoint::Entry Checkpoint::find(const std::string& name) const {
  auto owner = owner_.find(name);
  // "transformer.h.0..." is saved as "h.0..." without the head, and of a model that also sees "model.layers.0..." as
  // "language_model.model.layers.0..." or "model.language_model.layers.0...".
  constexpr std::string_view kHeadless = "transformer.", kModel = "model.";
  if (owner == owner_.end() && name.starts_with(kHeadless)) owner = owner_.find(name.substr(kHeadless.size()));
  if (owner == owner_.end()) owner = owner_.find("language_model." + name);
  if (owner == owner_.end() && name.starts_with(kModel))
    owner = owner_.find("model.language_model." + name.substr(kModel.size()));
  if (owner == owner_.end()) return {nullptr, name_};
  return {&owner->second->tensors.at(owner->first), owner->second->path};
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& entry : owner_) names.push_back(entry.first);
  return names;
}

}  // namespace dculab::engine
