#include "engine/checkpoint/safetensors.hpp"

#include <cstring>
#include <random>
#include <string>

#include "core/error.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(length >> (8 * i));
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) file[8 + header.size() + i] = static_cast<std::byte>(i);
  return file;
}

}  // namespace

TEST_CASE("tensors are found where the header says, in any order, with padding and metadata") {
  const std::vector<std::byte> file = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[12,16]},)"
      R"("a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"scalar":{"dtype":"U8","shape":[],"data_offsets":[16,17]},)"
      R"("none":{"dtype":"F64","shape":[0,7],"data_offsets":[12,12]}}   )",
      17);
  const TensorTable table = read_tensor_table(file, "file");
  REQUIRE(table.size() == 4);
  REQUIRE(table.at("a").dtype == "F32");
  REQUIRE(table.at("a").shape == std::vector<std::int64_t>{3});
  REQUIRE(table.at("b").shape == std::vector<std::int64_t>{2, 1});
  REQUIRE(table.at("b").bytes.size() == 4);
  REQUIRE(table.at("b").bytes[0] == std::byte{12});
  REQUIRE(table.at("scalar").bytes.size() == 1);
  REQUIRE(table.at("none").bytes.empty());
}

TEST_CASE("a file without tensors is valid") { REQUIRE(read_tensor_table(file_of("{}", 0), "file").empty()); }

TEST_CASE("a header of many tensors is read, and one of more than any model has is refused") {
  const auto header_of = [](int tensors) {
    std::string header;
    for (int index = 0; index < tensors; ++index)
      header += (index == 0 ? "{" : ",") + ("\"t" + std::to_string(index)) +
                R"(":{"dtype":"F16","shape":[0],"data_offsets":[0,0]})";
    return header + "}";
  };
  REQUIRE(read_tensor_table(file_of(header_of(40'000), 0), "file").size() == 40'000);
  const std::string last = R"(,"t7":{"dtype":"F16","shape":[0],"data_offsets":[0,0]}})";
  std::string twice = header_of(40'000);
  twice.replace(twice.size() - 1, 1, last);
  REQUIRE_THROWS_WITH(read_tensor_table(file_of(twice, 0), "file"), ContainsSubstring("key 't7' stands twice"));
}

TEST_CASE("a tensor's name is told in part, on one line") {
  const std::string name = "a\\n" + std::string(1000, 'x');
  REQUIRE_THROWS_WITH(
      read_tensor_table(file_of("{\"" + name + "\":1}", 0), "file"),
      "file: tensor 'a\\n" + std::string(198, 'x') + "...' must be an object with dtype, shape and data_offsets");
}

TEST_CASE("tensors of a sharded checkpoint are found in their shards") {
  const Checkpoint checkpoint(kGoldenFolder / "sharded");
  const auto embedding = checkpoint.find("model.embed_tokens.weight");
  REQUIRE(embedding.tensor != nullptr);
  REQUIRE_THAT(embedding.file, ContainsSubstring("-of-00003.safetensors"));
  REQUIRE(embedding.tensor->shape == std::vector<std::int64_t>{96, 32});
  const auto missing = checkpoint.find("no.such.tensor");
  REQUIRE(missing.tensor == nullptr);
  REQUIRE_THAT(missing.file, ContainsSubstring("model.safetensors.index.json"));
}

TEST_CASE("no damage to a header is accepted with views outside the file") {
  const MappedFile golden(kGoldenFolder / "mqa" / "model.safetensors");
  const std::vector<std::byte> intact(golden.bytes().begin(), golden.bytes().end());
  const std::size_t header_bytes = intact.size() - 8 - 39872;  // the data of a tensor table of this shape
  REQUIRE(read_tensor_table(intact, "file").size() == 21);
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> damaged = intact;
    const std::size_t at = random() % (8 + header_bytes);
    damaged[at] = static_cast<std::byte>("0123456789[]{}\",:-ex"[random() % 20]);
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    try {
      const TensorTable table = read_tensor_table(damaged, "file");
      for (const auto& [name, tensor] : table) {
        REQUIRE(tensor.bytes.data() >= damaged.data());
        REQUIRE(tensor.bytes.data() + tensor.bytes.size() <= damaged.data() + damaged.size());
      }
    } catch (const InputError& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("file"));
      ++refused;
    }
  }
  REQUIRE(refused > 1000);
}

}  // namespace dculab::engine
