// Tensors of a .safetensors file: where they lie, what they are, and that the file tells the truth about it.
//
// Format: u64 little-endian length of the header, the header (JSON: name -> {dtype, shape, data_offsets: [begin,
// end]}), then the data, which the tensors must tile without holes. Source: huggingface/safetensors, README "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/mapped_file.hpp"

namespace dculab::engine {

struct StoredTensor {
  std::string dtype;                 // as written: "F32", "F16", "BF16", "I32", ...
  std::vector<std::int64_t> shape;   // slowest dimension first, each >= 0
  std::span<const std::byte> bytes;  // into the file; not necessarily aligned
};

// Bytes of a value of a format whose values fill whole bytes: "F16", "I32", ... Nothing for others.
[[nodiscard]] std::optional<std::uint64_t> dtype_bytes(std::string_view dtype);

// "[32, 64]"
[[nodiscard]] std::string to_string(const std::vector<std::int64_t>& shape);

using TensorTable = std::map<std::string, StoredTensor>;

// Reads and checks the header of a whole file held in memory. `file` names it in the messages of InputError.
[[nodiscard]] TensorTable read_tensor_table(std::span<const std::byte> contents, const std::string& file);

// The weights of a model folder: model.safetensors, or the shards that model.safetensors.index.json names.
class Checkpoint {
 public:
  // Throws InputError naming the file: absent, truncated, lying, or a shard that lacks a tensor the index promises.
  explicit Checkpoint(const std::filesystem::path& folder);

  struct Entry {
    const StoredTensor* tensor = nullptr;  // null: the checkpoint has no such tensor
    std::string file;                      // where it is, or where it should be
  };
  // "transformer.x" is also found as "x": BLOOM and Falcon were saved without their heads too, and then lack the
  // prefix.
  [[nodiscard]] Entry find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Shard {
    std::string path;
    MappedFile file;
    TensorTable tensors;
  };
  Shard& open_shard(const std::filesystem::path& path);
  void open_indexed(const std::filesystem::path& folder, const std::filesystem::path& index);

  std::string name_;  // the file a missing tensor is missing from
  std::vector<std::unique_ptr<Shard>> shards_;
  std::map<std::string, const Shard*> owner_;  // tensor name -> its shard
};

}  // namespace dculab::engine
