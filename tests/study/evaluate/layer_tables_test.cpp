// The teaching tables: which model they are of, and what they refuse.
#include "study/evaluate/layer_tables.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

TEST_CASE("the lecture's model has MHA and a plain MLP of width 4D, of the model's own D and heads") {
  const ModelShape own = layer_intensity({.model = {.name = "llama-3-8b"}}).model;
  const ModelShape lecture = layer_intensity({.model = {.name = "llama-3-8b", .lecture = true}}).model;
  CHECK(own.heads().num_key_value_heads == 8);
  CHECK(lecture.heads().num_key_value_heads == lecture.heads().num_attention_heads);
  CHECK(lecture.heads().num_attention_heads == own.heads().num_attention_heads);
  CHECK(lecture.hidden_size == own.hidden_size);
  CHECK(lecture.num_layers() == own.num_layers());
  CHECK(lecture.layer(0).mlp.intermediate_size == 4 * own.hidden_size);
  CHECK(lecture.layer(0).mlp.kind == MlpKind::plain);
  CHECK(lecture.name == own.name + " as in the lecture (MHA, 4D MLP)");
}

TEST_CASE("a total is the sum of its rows") {
  const IntensityAnswer answer =
      layer_intensity({.model = {.name = "llama-3-8b"}, .phase = Phase::decode, .tokens = 100});
  FlopCount flops;
  for (const sim::IntensityRow& row : answer.table.rows) flops += row.flops;
  CHECK(flops.value() == Approx(answer.table.total.flops.value()));
}

TEST_CASE("the footprint's own row is one of the rows, and fewer KV heads take less") {
  const FootprintAnswer answer = model_footprint(
      {.model = {.name = "llama-3-8b"}, .request = {.tokens = 1000, .batch = 4, .weights = {Dtype::f16}}});
  const auto own = std::ranges::find(answer.rows, answer.own.kv_heads, &sim::Footprint::kv_heads);
  REQUIRE(own != answer.rows.end());
  CHECK(answer.own.kv_heads == 8);
  CHECK(own->kv_bytes == answer.own.kv_bytes);
  CHECK(own->kv_bytes.value() == 4 * 1000 * own->kv_bytes_per_token.value());
  const FootprintAnswer fewer = model_footprint({.model = {.name = "llama-3-8b", .kv_heads = 2},
                                                 .request = {.tokens = 1000, .batch = 4, .weights = {Dtype::f16}}});
  CHECK(4 * fewer.own.kv_bytes.value() == answer.own.kv_bytes.value());
}

TEST_CASE("the longest context fills the room that a machine leaves, and fewer KV heads go further") {
  const FootprintQuestion question{.model = {.name = "llama-3-8b"},
                                   .weights = {},
                                   .request = {.tokens = 1000, .batch = 16},
                                   .machines = {"z100", "k100-ai"}};
  const FootprintAnswer answer = model_footprint(question);
  REQUIRE(answer.rooms.size() == 2);
  const KvRoom& room = answer.rooms.front();
  CHECK(room.machine == "z100");
  CHECK(room.memory == 32 * kGiB);
  CHECK(room.kv_bytes > Bytes());
  CHECK(room.kv_bytes < 0.9 * room.memory - answer.own.weight_bytes);  // activations and buffers
  const auto longest = static_cast<double>(longest_context(question, answer, answer.own, room));
  const Bytes token = answer.own.kv_bytes_per_token * 16.0;
  CHECK(token * longest <= room.kv_bytes);
  CHECK(token * (longest + 1) > room.kv_bytes);
  std::int64_t before = 0;
  for (const sim::Footprint& row : answer.rows) {
    if (row.is_latent) continue;
    CHECK(longest_context(question, answer, row, room) > before);
    before = longest_context(question, answer, row, room);
  }
  CHECK(static_cast<double>(longest_context(question, answer, answer.own, answer.rooms.back())) > longest);
}

TEST_CASE("weights that fill a machine leave no context") {
  const FootprintQuestion question{
      .model = {.name = "llama-3-70b"}, .weights = {}, .request = {.tokens = 1000, .batch = 1}, .machines = {"z100"}};
  const FootprintAnswer answer = model_footprint(question);
  CHECK(answer.rooms.front().kv_bytes == Bytes());
  CHECK(longest_context(question, answer, answer.own, answer.rooms.front()) == 0);
}

TEST_CASE("what a model cannot have is refused by its option") {
  const auto refused = [](const IntensityQuestion& question, const std::string& why) {
    CHECK_THROWS_WITH(layer_intensity(question), ContainsSubstring(why));
  };
  refused({.model = {.name = "llama-3-8b"}, .layer = 32}, "--layer: ");
  refused({.model = {.name = "llama-3-8b", .kv_heads = 3}}, "--kv-heads: ");
  refused({.model = {.name = "deepseek-v3", .kv_heads = 4}}, "keeps latents, which all heads share");
  CHECK_THROWS_WITH(
      model_footprint({.model = {.name = "deepseek-v3"},
                       .request = {.tokens = 100, .weights = {Dtype::f16}, .kv_cache_dtype = Dtype::kivi4}}),
      ContainsSubstring("--kv-dtype"));
}

}  // namespace
}  // namespace dculab::study
