// The teaching tables of models with latents, experts and recurrent states, against their own formulas.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/tables/footprint.hpp"
#include "sim/tables/intensity.hpp"
#include "sim/tables/latent_forms.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr double kHidden = 7168, kHeads = 128, kLatent = 512, kRotated = 64, kPlain = 128, kValues = 128;

// Sizes of DeepSeek-V3: a dense layer, then two mixtures.
[[nodiscard]] ModelShape deepseek() {
  ModelShape model{.name = "deepseek", .hidden_size = 7168, .vocab_size = 1000, .max_position_embeddings = 1 << 17};
  LayerKind dense{.attention = Mla{.num_attention_heads = 128,
                                   .q_lora_rank = 1536,
                                   .kv_lora_rank = 512,
                                   .qk_nope_head_dim = 128,
                                   .qk_rope_head_dim = 64,
                                   .v_head_dim = 128},
                  .mlp = {18432}};
  LayerKind mixture = dense;
  mixture.mlp.intermediate_size = 2048;
  mixture.experts = Experts{.num_experts = 256, .num_experts_per_tok = 8, .intermediate_size = 2048};
  model.kinds.clear();
  for (const LayerKind& kind : {dense, mixture, mixture}) add_layer(model, kind);
  return model;
}

[[nodiscard]] const IntensityRow& row(const IntensityTable& table, std::string_view op) {
  const auto found = std::ranges::find(table.rows, op, &IntensityRow::op);
  REQUIRE(found != table.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("a model with latents stands beside what its heads would keep", "[tables]") {
  const FootprintRequest request{.tokens = 1000, .weights = {Dtype::bf16, 0}, .kv_cache_dtype = Dtype::bf16};
  const std::vector<Footprint> rows = footprint_table(deepseek(), request);
  REQUIRE(rows.size() == 9);  // 128, 64, ..., 1 KV heads, and latents
  CHECK(rows.front().kv_bytes_per_token.value() == 2 * 3 * 2 * kHeads * kValues);
  CHECK(rows.back().is_latent);
  CHECK(rows.back().kv_bytes_per_token.value() == 2 * 3 * (kLatent + kRotated));
  // Of one layer, the mean of a dense one and two mixtures.
  const double attention = kHidden * (1536 + kLatent + kRotated) + 1536 * kHeads * (kPlain + kRotated) +
                           kLatent * kHeads * (kPlain + kValues) + kHeads * kValues * kHidden;
  const double dense = attention + 3 * kHidden * 18432, mixture = attention + 3 * kHidden * 2048 * 257;
  CHECK(rows.back().layer_weight_bytes.value() == Approx(2 * (dense + 2 * mixture) / 3));
  CHECK(rows.back().crossover_tokens == Approx((dense + 2 * mixture) / (3 * (kLatent + kRotated))));
}

TEST_CASE("MLA of a model with KV heads has DeepSeek-V2's proportions", "[tables]") {
  const FootprintRequest request{.tokens = 1000};
  const Footprint latents = footprint_table(llama_3_8b(), request).back();
  CHECK(latents.is_latent);
  CHECK(latents.kv_bytes_per_token.value() == 2 * 32 * 4.5 * 128);
}

TEST_CASE("decode over latents scores one KV head for all query heads", "[tables]") {
  const IntensityTable table = intensity_table(deepseek(), 0, Phase::decode, 999, 2, Dtype::bf16);
  CHECK(row(table, "scores").flops.value() == 2.0 * 2 * kHeads * 1000 * (kLatent + kRotated));
  CHECK(row(table, "values").flops.value() == 2.0 * 2 * kHeads * 1000 * kLatent);
  CHECK(row(table, "absorb_k").flops.value() == 2.0 * 2 * kHeads * kPlain * kLatent);
  CHECK(row(table, "absorb_v").flops.value() == 2.0 * 2 * kHeads * kValues * kLatent);
  const double latents = 2 * 1000 * (kLatent + kRotated), queries = 2 * kHeads * (kLatent + kRotated);
  CHECK(row(table, "scores").bytes.value() == 2 * (latents + queries + 2 * kHeads * 1000));
}

TEST_CASE("prefill expands latents to K and V of every head", "[tables]") {
  const IntensityTable table = intensity_table(deepseek(), 0, Phase::prefill, 100, 1, Dtype::bf16);
  CHECK(row(table, "kv_b_proj").flops.value() == 2.0 * 100 * kLatent * kHeads * (kPlain + kValues));
  CHECK(row(table, "scores").flops.value() == 2.0 * 100 * 100 * kHeads * (kPlain + kRotated));
  CHECK(row(table, "values").flops.value() == 2.0 * 100 * 100 * kHeads * kValues);
}

TEST_CASE("experts read the weights of those that are chosen", "[tables]") {
  const IntensityTable table = intensity_table(deepseek(), 1, Phase::decode, 10, 1, Dtype::bf16);
  const IntensityRow& down = row(table, "experts_down_proj");
  CHECK(down.flops.value() == 2.0 * 8 * 2048 * kHidden);
  CHECK(down.bytes.value() == Approx(2 * (8 * 2048 + 8 * 2048 * kHidden + 8 * kHidden)));
  CHECK(row(table, "router").flops.value() == 2.0 * 256 * kHidden);
  CHECK(row(table, "down_proj").flops.value() == 2.0 * 2048 * kHidden);  // the shared expert
}

TEST_CASE("absorbing pays for few new tokens, expanding for a whole prompt", "[tables]") {
  EngineOptions options;
  options.weights = {Dtype::bf16, 0};
  for (const Machine& machine : {mi50_like(), a100_like()}) {
    INFO(machine.name);
    const std::vector<LatentForms> rows = latent_forms(machine, deepseek(), options, 1, 8192, std::array{1, 8192});
    CHECK(rows[0].cheaper() == LatentForm::absorb);
    CHECK(rows[0].expanded > 10 * rows[0].absorbed);
    CHECK(rows[1].cheaper() == LatentForm::expand);
  }
}

TEST_CASE("states of gated delta nets are held by the sequences that run", "[tables]") {
  ModelShape model = llama_3_8b();
  LayerKind recurrent = model.kinds[0];
  recurrent.attention = GatedDeltaNet{
      .num_key_heads = 16, .num_value_heads = 32, .key_head_dim = 128, .value_head_dim = 128, .conv_kernel = 4};
  model.layers.clear();
  const LayerKind full = model.kinds[0];
  model.kinds.clear();
  for (int layer = 0; layer < 32; ++layer) add_layer(model, layer % 4 == 3 ? full : recurrent);
  REQUIRE(problems(model).empty());
  EngineOptions options;
  options.max_num_seqs = 10;
  const Capacity held = capacity(a100_like(), model, options, 100);
  const double state = 24 * (4.0 * 32 * 128 * 128 + 2.0 * 3 * (2 * 16 * 128 + 32 * 128));
  CHECK(held.state.value() == Approx(state));
  CHECK(held.kept_apart == Bytes());
  // As many blocks as the state and 100 tokens take, rounded up.
  const auto blocks_each =
      static_cast<std::int64_t>(std::ceil((std::ceil(state / (8 * 2 * 2.0 * 8 * 128)) + 100) / 16));
  CHECK(held.max_sequences == held.num_blocks / blocks_each);
  CHECK(footprint(model, {.tokens = 10}).kv_bytes.value() == Approx(10 * 2 * 8 * 2.0 * 8 * 128 + state));
  CHECK_THROWS_AS(intensity_table(model, 0, Phase::decode, 10, 1, Dtype::f16), InputError);
}

}  // namespace dculab::sim::test
