// model.safetensors.index.json beside three sound shards.
#include <filesystem>
#include <string>

#include "engine/checkpoint/safetensors.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

namespace fs = std::filesystem;

struct ShardedFolder : ScratchFolder {
  ShardedFolder() {
    for (const auto& file : fs::directory_iterator(DCULAB_SOURCE_DIR "/tests/golden/llama/sharded"))
      if (file.path().filename().string().starts_with("model-")) fs::copy_file(file, path() / file.path().filename());
  }
};

}  // namespace

void read_shard_index(std::string_view input) {
  static const ShardedFolder folder;
  folder.write("model.safetensors.index.json", input);
  const engine::Checkpoint checkpoint(folder.path());
  for (const std::string& name : checkpoint.names()) {
    const auto [tensor, file] = checkpoint.find(name);
    require(tensor != nullptr, "a tensor that the index names is there");
    require(fs::path(file).parent_path() == folder.path(), "a shard lies beside its index");
  }
}

}  // namespace dculab::fuzz
