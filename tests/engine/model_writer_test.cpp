// A model written as a folder is the model that was read.
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "model/folder/model_config.hpp"
#include "model/folder/model_files.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

// A folder of its own for one test.
class Scratch {
 public:
  explicit Scratch(const char* test) : path_(fs::temp_directory_path() / (std::string("dculab_writer_") + test)) {
    fs::remove_all(path_);
    fs::create_directory(path_);
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

std::size_t bytes_of(const TensorSlot& slot) {
  return slot.values() * static_cast<std::size_t>(bits(slot.view->dtype)) / 8;
}

}  // namespace

TEST_CASE("written tensors are read back, in any dtype and shape") {
  const Scratch scratch("tensors");
  const std::vector<float> matrix{1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> packed{7, -8};
  const std::vector<TensorToWrite> tensors{{"b.matrix", "F32", {2, 3}, std::as_bytes(std::span(matrix))},
                                           {"a \"quoted\" name", "I32", {2}, std::as_bytes(std::span(packed))},
                                           {"nothing", "F16", {0, 4}, {}}};
  write_safetensors(scratch / "x.safetensors", tensors);
  REQUIRE(scratch.entries() == 1);
  const MappedFile file(scratch / "x.safetensors");
  const TensorTable table = read_tensor_table(file.bytes(), "x");
  REQUIRE(table.size() == 3);
  for (const TensorToWrite& tensor : tensors) {
    const StoredTensor& stored = table.at(tensor.name);
    REQUIRE(stored.dtype == tensor.dtype);
    REQUIRE(stored.shape == tensor.shape);
    REQUIRE(std::ranges::equal(stored.bytes, tensor.bytes));
  }
  REQUIRE_THROWS_AS(write_safetensors(scratch / "absent" / "x.safetensors", tensors), InputError);
}

TEST_CASE("a model that is written and loaded again has the same shape and bits") {
  for (const char* variant : {"mha", "gqa", "tied", "sharded", "rope_llama3"}) {
    const Scratch scratch("round_trip");
    ModelWeights weights = load_weights(kGoldenFolder / variant);
    write_model(scratch / "model", weights, kGoldenFolder / variant);
    ModelWeights again = load_weights(scratch / "model");
    REQUIRE(again.shape.dtype == weights.shape.dtype);
    REQUIRE(again.shape.kinds[0].gqa().position.rope_scaling.factor ==
            weights.shape.kinds[0].gqa().position.rope_scaling.factor);
    const auto before = tensor_slots(weights);
    const auto after = tensor_slots(again);
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      REQUIRE(after[i].view->dtype == before[i].view->dtype);
      REQUIRE(std::memcmp(after[i].view->data, before[i].view->data, bytes_of(before[i])) == 0);
    }
  }
}

TEST_CASE("fewer KV heads stand in config.json, the rest of it stays") {
  const Scratch scratch("kv_heads");
  write_model(scratch / "model", regrouped(load_weights(kGoldenFolder / "text"), 1), kGoldenFolder / "text");
  nlohmann::json config = nlohmann::json::parse(read_model_text((scratch / "model" / "config.json").string()));
  nlohmann::json before = nlohmann::json::parse(read_model_text((kGoldenFolder / "text" / "config.json").string()));
  REQUIRE(config["num_key_value_heads"] == 1);
  config.erase("num_key_value_heads");
  before.erase("num_key_value_heads");
  REQUIRE(config == before);
  REQUIRE(read_model_text((scratch / "model" / "tokenizer.json").string()) ==
          read_model_text((kGoldenFolder / "text" / "tokenizer.json").string()));
}

TEST_CASE("what is copied into a new model is written as the rest of it is, with the rights of new files") {
  const Scratch scratch("copied");
  fs::create_directory(scratch / "source");
  fs::create_directory(scratch / "model");
  const std::string merges(200'000, 'm');  // several pieces
  std::ofstream(scratch / "source" / "merges.txt") << merges;
  fs::permissions(scratch / "source" / "merges.txt", fs::perms::owner_read);
  std::ofstream(scratch / "new") << "";
  copy_companion_files(scratch / "source", scratch / "model");
  REQUIRE(read_model_text((scratch / "model" / "merges.txt").string()) == merges);
  REQUIRE(fs::status(scratch / "model" / "merges.txt").permissions() == fs::status(scratch / "new").permissions());
}

TEST_CASE("a folder in use, and a place that is not there, are refused and left alone") {
  const Scratch scratch("refused");
  fs::create_directory(scratch / "used");
  std::ofstream(scratch / "used" / "notes.txt") << "mine\n";
  const ModelWeights weights = load_weights(kGoldenFolder / "mha");
  REQUIRE_THROWS_WITH(write_model(scratch / "used", weights, kGoldenFolder / "mha"),
                      ContainsSubstring("exists already"));
  REQUIRE_THROWS_WITH(write_model(scratch / "absent" / "model", weights, kGoldenFolder / "mha"),
                      ContainsSubstring("cannot be created"));
  REQUIRE_THROWS_AS(write_model(scratch / "model", weights, scratch / "no_source"), InputError);
  REQUIRE(scratch.entries() == 1);
  fs::create_directory(scratch / "empty");
  REQUIRE_NOTHROW(write_model(scratch / "empty", weights, kGoldenFolder / "mha"));
}

TEST_CASE("what a model takes over is its own, and no link to anything else") {
  const Scratch scratch("companions");
  const auto write = [](const fs::path& file, const char* text) { std::ofstream(file) << text; };
  write(scratch / "secret.key", "secret");
  const fs::path plain = scratch / "plain";
  fs::create_directory(plain);
  write(plain / "merges.txt", "a b\n");
  write(plain / "vocab.json", "{}");
  fs::create_symlink("merges.txt", plain / "chat_template.jinja");
  REQUIRE(companion_files(plain) == std::vector<std::string>{"vocab.json", "merges.txt", "chat_template.jinja"});
  fs::remove(plain / "chat_template.jinja");
  fs::create_symlink("../secret.key", plain / "chat_template.jinja");
  REQUIRE_THROWS_WITH(companion_files(plain), ContainsSubstring("chat_template.jinja: is a link to ") &&
                                                  ContainsSubstring("outside the model's folder"));
  fs::remove(plain / "chat_template.jinja");
  fs::create_symlink("nowhere", plain / "chat_template.jinja");
  REQUIRE_THROWS_WITH(companion_files(plain), ContainsSubstring("leads nowhere"));
  fs::remove(plain / "chat_template.jinja");
  fs::create_directory(plain / "chat_template.jinja");
  REQUIRE_THROWS_WITH(companion_files(plain), ContainsSubstring("not a regular file"));
  fs::remove(plain / "chat_template.jinja");
  write(plain / "tokenizer_config.json", "{\"a\": ");
  REQUIRE_THROWS_WITH(companion_files(plain), ContainsSubstring("tokenizer_config.json:1:7: is not valid JSON"));
}

TEST_CASE("a snapshot of a Hub cache takes over the blobs of its own repository") {
  const Scratch scratch("hub");
  const auto make = [&](const char* repository) {
    const fs::path root = scratch / repository;
    fs::create_directories(root / "blobs");
    fs::create_directories(root / "snapshots" / "0123");
    std::ofstream(root / "blobs" / "abcd") << "a b\n";
    return root / "snapshots" / "0123";
  };
  const fs::path snapshot = make("models--who--what");
  fs::create_symlink("../../blobs/abcd", snapshot / "merges.txt");
  REQUIRE(companion_files(snapshot) == std::vector<std::string>{"merges.txt"});
  fs::create_directory(scratch / "copy");
  copy_companion_files(snapshot, scratch / "copy");
  REQUIRE(fs::symlink_status(scratch / "copy" / "merges.txt").type() == fs::file_type::regular);
  make("models--another--one");
  fs::create_symlink("../../../models--another--one/blobs/abcd", snapshot / "vocab.json");
  REQUIRE_THROWS_WITH(companion_files(snapshot), ContainsSubstring("vocab.json: is a link to "));
  const fs::path lookalike = make("other");
  fs::create_symlink("../../blobs/abcd", lookalike / "merges.txt");
  REQUIRE_THROWS_WITH(companion_files(lookalike), ContainsSubstring("merges.txt: is a link to "));
}

TEST_CASE("a damaged weight is refused when it is loaded, copied or mapped") {
  const Scratch scratch("damaged");
  const fs::path folder = scratch / "model";
  fs::copy(kGoldenFolder / "mha", folder);
  const auto offset = [&] {
    const MappedFile file(folder / "model.safetensors");
    return read_tensor_table(file.bytes(), "x").at("model.layers.1.mlp.up_proj.weight").bytes.data() -
           file.bytes().data();
  }();
  const float damage = std::numeric_limits<float>::infinity();
  std::fstream file(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset + 40);
  file.write(reinterpret_cast<const char*>(&damage), sizeof damage);
  file.close();
  for (const WeightMemory memory : {WeightMemory::huge_pages, WeightMemory::mapped})
    REQUIRE_THROWS_WITH(load_weights(folder, memory),
                        ContainsSubstring("model.safetensors: tensor ") &&
                            ContainsSubstring("up_proj.weight' has a weight that is NaN"));
}

}  // namespace dculab::engine
