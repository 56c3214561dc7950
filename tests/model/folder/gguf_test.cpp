// Headers of models in GGUF, as gguf-py's writer made them (tests/data/foreign/README.md).
#include "model/folder/gguf_header.hpp"

#include "core/error.hpp"
#include "files/input.hpp"
#include "model/folder/gguf_config.hpp"
#include "model/folder/model_config.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

std::string foreign(const std::string& name) { return DCULAB_SOURCE_DIR "/tests/data/foreign/gguf/" + name; }

}  // namespace

TEST_CASE("a GGUF header has metadata and tensors", "[gguf]") {
  const GgufHeader header = read_gguf_header(foreign("GGUFSharp_example.gguf"));
  CHECK(header.text("general.architecture") == "llama");
  CHECK(header.number("llama.block_count") == 12);
  CHECK(header.number("answer_in_float") == 42);
  CHECK_FALSE(header.number("general.architecture"));
  CHECK(header.text("answer").empty());
  REQUIRE(header.tensors.size() == 3);
  CHECK(header.tensors[1].name == "tensor2");
  CHECK(header.tensors[1].values() == 64);
  CHECK(find_gguf_type(header.tensors[1].type)->name == "F32");
}

TEST_CASE("models in GGUF have the shape of their config.json, and the nearest format of their weights", "[gguf]") {
  const ModelShape llama = read_model_shape(foreign("writer_tiny_llama_q4_k_m.gguf"));
  CHECK(llama.name == "writer_tiny_llama_q4_k_m");
  CHECK(llama.num_layers() == 1);
  CHECK(llama.hidden_size == 256);
  CHECK(llama.vocab_size == 64);
  CHECK(llama.heads() == Heads{8, 2, 32});
  CHECK(llama.max_position_embeddings == 4096);
  CHECK(llama.layer(0).mlp.intermediate_size == 256);
  CHECK_FALSE(llama.tie_word_embeddings);
  CHECK(llama.quantization == WeightFormat{Dtype::int4, 32});
  CHECK_THAT(llama.notes.back(), ContainsSubstring("bits a weight of a layer, priced as int4"));

  const ModelShape mixture = read_model_shape(foreign("writer_tiny_qwen3moe_q8_0.gguf"));
  CHECK(mixture.heads() == Heads{4, 2, 32});
  REQUIRE(mixture.layer(0).experts);
  CHECK(mixture.layer(0).experts->num_experts == 8);
  CHECK(mixture.layer(0).experts->num_experts_per_tok == 2);
  CHECK(mixture.layer(0).experts->intermediate_size == 32);
  CHECK(mixture.quantization == WeightFormat{Dtype::int8, 32});
}

TEST_CASE("GGUF that is not read says why and what to give", "[gguf]") {
  CHECK_THROWS_WITH(read_model_shape(foreign("writer_tiny_jamba_headcountkv-array.gguf")),
                    ContainsSubstring("general.architecture 'jamba' is not known") && ContainsSubstring("config.json"));
  CHECK_THROWS_WITH(read_model_shape(foreign("GGUFSharp_example.gguf")), ContainsSubstring("hidden_size"));
  const std::string whole = files::read_text(foreign("writer_tiny_llama_q4_k_m.gguf"), 1 << 20);
  for (const std::size_t size : {3U, 7U, 30U, 1000U, 2700U})
    CHECK_THROWS_AS(parse_gguf_header("x.gguf", std::string_view(whole).substr(0, size)), InputError);
  CHECK_NOTHROW(parse_gguf_header("x.gguf", std::string_view(whole).substr(0, 2735)));
  std::string big_endian = whole;
  std::swap(big_endian[4], big_endian[7]);
  CHECK_THROWS_WITH(parse_gguf_header("x.gguf", big_endian), ContainsSubstring("little-endian"));

  GgufHeader layers;
  layers.metadata = {{"general.architecture", std::string("llama")},
                     {"llama.attention.head_count_kv", std::vector<double>{4, 8}}};
  CHECK_THROWS_WITH(gguf_config(layers, "x.gguf"), ContainsSubstring("differs from layer to layer"));
}
