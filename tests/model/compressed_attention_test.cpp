// DeepSeek-V4: attention over a window and compressed entries, residual streams, and its configuration.
#include <algorithm>
#include <string>

#include "model/attention_work.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/model_config.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "tests/model/small_plan.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

constexpr int kHeadDim = 16;

[[nodiscard]] CompressedAttention small_window() {
  return {.num_attention_heads = kSmallHeads,
          .head_dim = kHeadDim,
          .qk_rope_head_dim = 4,
          .q_lora_rank = 8,
          .o_groups = 2,
          .o_lora_rank = 6,
          .sliding_window = 128};
}

[[nodiscard]] CompressedAttention small_heavy() {
  CompressedAttention attention = small_window();
  attention.compress_ratio = 128;
  return attention;
}

[[nodiscard]] CompressedAttention small_sparse() {
  CompressedAttention attention = small_window();
  attention.compress_ratio = 4;
  attention.index_n_heads = 3, attention.index_head_dim = 8, attention.index_topk = 100;
  return attention;
}

[[nodiscard]] ModelShape small_compressed(const Attention& attention, int layers = 2) {
  ModelShape model{.name = "small", .hidden_size = kSmallHidden, .vocab_size = 100, .max_position_embeddings = 8192};
  set_layers(model, layers, {.attention = attention, .mlp = {128}});
  return model;
}

[[nodiscard]] StepPlan decode_at(const ModelShape& model, int context, int batch = 1) {
  EngineOptions options;
  options.weights = {Dtype::f16, 0};
  return plan_step(model, options, uniform_batch(Phase::decode, batch, context));
}

// The configuration of transformers 5.23 whose parameters it counts on the meta device.
constexpr const char* kSmallConfig = R"({"model_type": "deepseek_v4", "vocab_size": 100, "hidden_size": 64,
  "moe_intermediate_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 16, "q_lora_rank": 8,
  "n_routed_experts": 8, "num_experts_per_tok": 2, "o_groups": 2, "o_lora_rank": 6, "index_n_heads": 3,
  "index_head_dim": 16, "index_topk": 16, "sliding_window": 64, "hc_mult": 2, "dtype": "bfloat16")";

[[nodiscard]] ModelShape read_compressed(const std::string& fields) {
  return parse_model_shape(kSmallConfig + fields + "}", "config.json", "small");
}

}  // namespace

TEST_CASE("each token sees the entries that are complete before it, or the best of them", "[compressed]") {
  CHECK(entry_pairs(4, 0, 10) == 3 * 0 + 4 * 1 + 3 * 2);
  CHECK(entry_pairs(4, 1, 10) == 7 * 1);
  CHECK(entry_pairs(4, 2, 20) == 4 * 1 + 13 * 2);
  CHECK(entry_pairs(128, 0, 127) == 0);
  CHECK(entry_pairs(0, 0, 100) == 0);
}

TEST_CASE("decode reads the window and the chosen entries, and scores all entries", "[compressed]") {
  const ModelShape model = small_compressed(small_sparse());
  REQUIRE(problems(model).empty());
  const StepPlan plan = decode_at(model, 1000, 3);
  // The query at 999 sees 128 tokens and 100 of 250 entries; the tiles that hold its window begin at 832.
  const Op& attention = find(plan, "attention_decode");
  CHECK(attention.attention.score_pairs == 3 * (128 + 100));
  CHECK(attention.flops.value() == 4.0 * 3 * 228 * kSmallHeads * kHeadDim);
  CHECK(bytes_of(attention, OperandRole::kv_read) == 2.0 * 3 * (1000 - 832 + 100) * kHeadDim);
  const Op& scores = find(plan, "index_scores");
  CHECK(scores.flops.value() == 3.0 * 250 * 3 * (2 * 8 + 3));
  CHECK(bytes_of(scores, OperandRole::kv_read) == 2.0 * 3 * 250 * 8);
  CHECK(bytes_of(scores, OperandRole::output) == 4.0 * 3 * 250);
  CHECK(bytes_of(find(plan, "choose_entries"), OperandRole::output) == 4.0 * 3 * 100);
  CHECK(find(plan, "index_q_b_proj").n == 3 * 8);

  const StepPlan heavy = decode_at(small_compressed(small_heavy()), 1000);
  CHECK(find(heavy, "attention_decode").attention.score_pairs == 128 + 7);
  CHECK(!has(heavy, "index_scores"));
  const StepPlan window = decode_at(small_compressed(small_window()), 1000);
  CHECK(find(window, "attention_decode").attention.score_pairs == 128);
  CHECK(!has(window, "compress"));
  CHECK(!has(decode_at(model, 3), "index_scores"));  // no entry is complete
}

TEST_CASE("a prompt has as many pairs whole as in chunks", "[compressed]") {
  for (const CompressedAttention& attention : {small_sparse(), small_heavy()}) {
    const auto pairs = [&](int computed, int added) {
      Batch batch;
      batch.sequences = {{.phase = Phase::prefill, .num_computed_tokens = computed, .num_new_tokens = added}};
      return plan_attention(attention, {}, batch, Phase::prefill).attention.score_pairs;
    };
    CHECK(pairs(0, 1000) == pairs(0, 300) + pairs(300, 333) + pairs(633, 367));
  }
}

TEST_CASE("an entry is written when its last token comes, from two series of values with an indexer", "[compressed]") {
  const ModelShape model = small_compressed(small_sparse());
  const StepPlan plan = decode_at(model, 1000), before = decode_at(model, 999);
  CHECK(find(plan, "compress_proj").n == 2 * 2 * (16 + 8) + 3);
  const Op& compress = find(plan, "compress");
  CHECK(bytes_of(compress, OperandRole::kv_write) == 2 * (16 + 8));
  CHECK(compress.flops.value() == 8.0 * 2 * 4 * (16 + 8) + 3.0 * (16 + 8 + 2 * 4));
  CHECK(bytes_of(find(before, "compress"), OperandRole::kv_write) == 0);
  CHECK(bytes_of(find(before, "compress"), OperandRole::output) == 2.0 * 2 * 2 * (16 + 8));  // kept for its entry
  CHECK(find(decode_at(small_compressed(small_heavy()), 999), "compress_proj").n == 2 * 16);
}

TEST_CASE("queries and outputs go through latents, and back from the rotation of their values", "[compressed]") {
  const StepPlan plan = decode_at(small_compressed(small_window()), 1000, 3);
  CHECK(find(plan, "qkv_a_proj").n == 8 + 16);
  CHECK(find(plan, "q_b_proj").k == 8);
  CHECK(find(plan, "rotate_output").flops.value() == 3.0 * 3 * kSmallHeads * 4);
  const Op& groups = find(plan, "o_a_proj");
  CHECK(groups.groups.count == 2);
  CHECK(groups.k == kSmallHeads * kHeadDim / 2);
  CHECK(groups.flops.value() == 2.0 * 3 * 2 * 6 * 32);
  CHECK(bytes_of(groups, OperandRole::weight) == 2.0 * 2 * 6 * 32);
  CHECK(find(plan, "o_proj").k == 12);
}

TEST_CASE("a cache has entries for tokens, and windows and open entries for sequences", "[compressed]") {
  const auto per_token = [](const Attention& attention) {
    return kv_bytes_per_token(small_compressed(attention), Dtype::bf16).value();
  };
  CHECK(per_token(small_sparse()) == 2 * 2 * (16 + 8) / 4.0);
  CHECK(per_token(small_heavy()) == 2 * 2 * 16 / 128.0);
  CHECK(per_token(small_window()) == 0);
  CHECK(kv_residual_bytes(small_compressed(small_heavy()), Dtype::bf16, 0).value() == 2 * 2 * 128 * 16);
  CHECK(recurrent_state_bytes(small_compressed(small_heavy())).value() == 2 * 2 * 128 * (2 * 16));
  CHECK(recurrent_state_bytes(small_compressed(small_sparse())).value() == 2 * 2 * 4 * (4 + 2) * (16 + 8));
  const ModelShape model = small_compressed(small_sparse());
  CHECK(model.heads() == Heads{kSmallHeads, 1, kHeadDim});
  CHECK(model.possible_kv_heads() == std::vector{1});
  EngineOptions options;
  options.weights = {Dtype::f16, 0};
  CHECK(problems(options, model).empty());
  options.enable_prefix_caching = true;
  CHECK(problems(options, model).size() == 1);
}

TEST_CASE("residual streams are mixed around each half of a layer, and before the head", "[compressed]") {
  ModelShape model = small_compressed(small_window(), 3);
  model.residual_streams = 4, model.sinkhorn_iterations = 20;
  REQUIRE(problems(model).empty());
  const StepPlan plan = decode_at(model, 1000, 5);
  CHECK(std::ranges::count(plan.ops, std::string_view("streams_proj"), &Op::name) == 2);
  const Op& weights = find(plan, "streams_proj");
  CHECK(weights.count == 3);
  CHECK(weights.flops.value() == 2.0 * 5 * 24 * (4 * kSmallHidden));
  CHECK(bytes_of(weights, OperandRole::weight) == 4.0 * 24 * 4 * kSmallHidden);
  CHECK(find(plan, "streams_to_half").flops.value() == 5 * (5.0 * 4 * kSmallHidden + 4.0 * 20 * 16 + 7 * 24));
  CHECK(find(plan, "half_to_streams").flops.value() == 2.0 * 4 * 5 * 5 * kSmallHidden);
  CHECK(bytes_of(find(plan, "half_to_streams"), OperandRole::output) == 2.0 * 5 * 4 * kSmallHidden);
  CHECK(find(plan, "head_streams_proj").n == 4);
  CHECK(find(plan, "input_layernorm").added == std::array{Buffer::none, Buffer::none});
  model.kinds[0].norms = NormPlacement::post;
  CHECK(problems(model).size() == 1);
}

TEST_CASE("devices share heads and their groups, and each has all entries", "[compressed]") {
  const ModelShape model = small_compressed(small_sparse());
  const ModelShape part = shard(model, {}, 2);
  CHECK(part.kinds[0].compressed()->num_attention_heads == 2);
  CHECK(part.kinds[0].compressed()->o_groups == 1);
  CHECK(part.kinds[0].compressed()->index_n_heads == 3);
  CHECK(kv_bytes_per_token(part, Dtype::f16) == kv_bytes_per_token(model, Dtype::f16));
  const auto found = shard_problems(model, {Dtype::f16, 0}, 4);
  REQUIRE(found.size() == 1);
  CHECK_THAT(found.front(), ContainsSubstring("o_groups"));
}

TEST_CASE("DeepSeek-V4's layers are read as transformers writes them, and as they were published", "[compressed]") {
  const ModelShape model = read_compressed(R"(, "layer_types": ["sliding_attention", "compressed_sparse_attention",
    "heavily_compressed_attention", "compressed_sparse_attention"], "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"],
    "rope_parameters": {"main": {"rope_theta": 10000}, "compress": {"rope_theta": 50000}})");
  // 280283 of transformers 5.23, without the routers' biases of the last three layers.
  const double values = weight_footprint(model, {Dtype::bf16, 0}) / storage(Dtype::bf16, 1);
  CHECK(values == 280283 + 3 * 8);
  CHECK(read_compressed(
            R"(, "compress_ratios": [0, 4, 128, 4, 0], "num_hash_layers": 1, "compress_rope_theta": 50000)") == model);
  CHECK(model.layer(0).experts->by_token_id);
  CHECK(!model.layer(0).experts->correction_bias);
  CHECK(model.layer(0).compressed()->position.rope_theta == 10000);
  CHECK(model.layer(2).compressed()->position.rope_theta == 50000);
  CHECK(model.layer(2).compressed()->index_n_heads == 0);
  CHECK(model.layer(1).compressed()->compress_ratio == 4);
  REQUIRE(model.notes.size() == 1);
  CHECK_THAT(model.notes.front(), ContainsSubstring("tid2eid, in 1 layers"));
}

TEST_CASE("experts in FP4 stand beside matrices in FP8, unless another format is asked for", "[compressed]") {
  const ModelShape model =
      read_compressed(R"(, "expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8"})");
  const WeightFormat fp8{Dtype::fp8_e4m3, 0}, fp4{Dtype::mxfp4, 32, ScaleFormat::e8m0}, int4{Dtype::int4, 128};
  REQUIRE(model.layer_format() == fp8);
  const LayerKind& kind = model.kinds.front();
  CHECK(model.slot_format(WeightSlot::expert_up_proj, kind, fp8) == fp4);
  CHECK(model.slot_format(WeightSlot::q_b_proj, kind, fp8) == fp8);
  CHECK(model.slot_format(WeightSlot::up_proj, kind, fp8) == fp8);
  CHECK(model.slot_format(WeightSlot::compress_proj, kind, fp8) == WeightFormat{Dtype::bf16, 0});
  CHECK(model.slot_format(WeightSlot::expert_up_proj, kind, int4) == int4);
}

TEST_CASE("DeepSeek-V4's older keys give the tokens of an entry, and the rotated part of a head", "[compressed]") {
  const auto ratios_of = [](const char* fields) {
    std::vector<int> ratios;
    const ModelShape model = read_compressed(fields);
    for (int layer = 0; layer < 4; ++layer) ratios.push_back(model.layer(layer).compressed()->compress_ratio);
    return ratios;
  };
  CHECK(ratios_of(R"(, "compress_rate_csa": 8, "compress_rate_hca": 64, "compress_ratios": [0, 8, 64, 8])") ==
        std::vector{0, 8, 64, 8});
  CHECK(ratios_of(R"(, "compress_rates": {"compressed_sparse_attention": 16, "heavily_compressed_attention": 64},
                      "compress_rate_csa": 8, "compress_ratios": [0, 8, 64, 8])") == std::vector{0, 8, 64, 8});
  const auto rotated = [](const char* fields) {
    return read_compressed(std::string(fields).c_str()).layer(0).compressed()->qk_rope_head_dim;
  };
  const int head_dim = read_compressed("").layer(0).compressed()->head_dim;
  CHECK(rotated(R"(, "partial_rotary_factor": 0.5)") == head_dim / 2);
}

TEST_CASE("what DeepSeek-V4 does not know is refused", "[compressed]") {
  const auto refuses = [](const char* fields, const char* message) {
    CHECK_THROWS_WITH(read_compressed(fields), ContainsSubstring(message));
  };
  refuses(R"(, "compress_ratios": [0, 4, 64, 4])", "must have 0, 4 and 128 alone");
  refuses(R"(, "compress_ratios": [0, 4])", "an entry for each layer");
  refuses(R"(, "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"])",
          "'full_attention', which is not supported");
  refuses(R"(, "mlp_layer_types": ["dense", "moe", "moe", "moe"])", "hash_moe and moe alone");
  refuses(R"(, "expert_dtype": "int3")", "'int3' is not supported");
  refuses(R"(, "num_key_value_heads": 2)", "must be 1");
  refuses(R"(, "scoring_func": "tanh")", "sqrtsoftplus");
  CHECK_THROWS_WITH(
      parse_model_shape(R"({"model_type": "deepseek_v4", "q_lora_rank": 8, "o_lora_rank": 6, "o_groups": 7})",
                        "config.json", "small"),
      ContainsSubstring("o_groups (7) does not divide the 64 query heads"));
}
