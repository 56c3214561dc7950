// Models whose groups or layers differ: computed as copies of their heads are, written, and read again.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/regroup/head_calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "engine/regroup/regroup.hpp"
#include "model/model_config.hpp"
#include "tests/engine/support/regroup_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// All of a model's layers with these groups, in turn.
std::vector<LayerMerge> alternating(const ModelWeights& weights, const HeadGroups& even, const HeadGroups& odd) {
  std::vector<LayerMerge> layers;
  for (std::size_t i = 0; i < weights.layers.size(); ++i) layers.push_back({i % 2 == 0 ? even : odd, {}, {}});
  return layers;
}

// Gives all heads of a group in `weights` the K and V that their group has in `merged`: equal groups, the same results.
void copy_merged(ModelWeights& weights, const ModelWeights& merged, const std::vector<LayerMerge>& layers) {
  const auto values =
      static_cast<std::size_t>(weights.shape.heads().head_dim) * static_cast<std::size_t>(weights.shape.hidden_size);
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (std::size_t group = 0; group < layers[layer].groups.size(); ++group)
      for (const std::size_t part : {kK, kV}) {
        const kernels::WeightView& to = weights.layers[layer][WeightSlot::qkv_proj].weights[part];
        const std::size_t bytes = values * static_cast<std::size_t>(bits(to.dtype)) / 8;
        for (const int head : layers[layer].groups[group])
          std::memcpy(writable(to) + static_cast<std::size_t>(head) * bytes,
                      writable(merged.layers[layer][WeightSlot::qkv_proj].weights[part]) + group * bytes, bytes);
      }
}

// A prompt in two chunks, then two decodes.
std::vector<Logits> generated(const ModelWeights& weights, StepperOptions options = {}) {
  Stepper stepper(weights, options);
  std::vector<Logits> logits = stepper.step({{0, Phase::prefill, {5, 17, 3, 40, 11, 8, 2}}});
  for (const auto& feed :
       {Feed{0, Phase::prefill, {9, 1, 4}}, Feed{0, Phase::decode, {7}}, Feed{0, Phase::decode, {12}}})
    std::ranges::copy(stepper.step({feed}), std::back_inserter(logits));
  return logits;
}

class OutputFolder {
 public:
  explicit OutputFolder(const char* test)
      : path_(std::filesystem::temp_directory_path() / (std::string("dculab_rules_") + test)) {
    std::filesystem::remove_all(path_);
  }
  ~OutputFolder() { std::filesystem::remove_all(path_); }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string grouped_config(const std::string& more) {
  return R"({"model_type": "dculab_grouped", "grouped_model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2,
             "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99, )" +
         more + "}";
}

}  // namespace

TEST_CASE("groups of different sizes compute what copies of their heads compute", "[regroup]") {
  for (const auto& [even, odd] : {std::pair{HeadGroups{{0}, {1, 2, 3}}, HeadGroups{{0, 1, 2, 3}}},
                                  {HeadGroups{{3}, {1}, {0, 2}}, HeadGroups{{0, 1}, {2, 3}}},
                                  {HeadGroups{{0}, {1}, {2}, {3}}, HeadGroups{{1, 2}, {0}, {3}}}}) {
    const ModelWeights weights = load_weights(mha_model().folder());
    const std::vector<LayerMerge> layers = alternating(weights, even, odd);
    const ModelWeights merged = merge_heads(weights, layers);
    REQUIRE(merged.shape.has_unequal_heads());
    REQUIRE(problems(merged.shape).empty());
    ModelWeights copied = load_weights(mha_model().folder());
    copy_merged(copied, merged, layers);
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::int8, Dtype::fp8_e4m3})
      for (const int block_size : {4, 16}) {
        const StepperOptions options{.block_size = block_size, .kv_dtype = dtype};
        require_near(generated(merged, options), generated(copied, options));
      }
  }
}

TEST_CASE("what needs equal groups refuses others", "[regroup]") {
  const ModelWeights weights = load_weights(mha_model().folder());
  const ModelWeights merged = merge_heads(weights, alternating(weights, {{0}, {1, 2, 3}}, {{0, 1}, {2, 3}}));
  REQUIRE_THROWS_WITH(merge_heads(merged, alternating(weights, {{0, 1}}, {{0, 1}})),
                      ContainsSubstring("differ already"));
  EngineOptions options;
  options.kv_retention.policy = RetentionPolicy::heavy_hitters;
  REQUIRE_THAT(problems(options, merged.shape).at(0), ContainsSubstring("equal heads and groups"));
  options = {};
  options.kv_cache_dtype = Dtype::kivi4;
  REQUIRE_THAT(problems(options, merged.shape).at(0), ContainsSubstring("equal heads and groups"));
}

TEST_CASE("a model of unequal groups is written, and read again", "[regroup]") {
  const OutputFolder folder("unequal");
  const ModelWeights weights = load_weights(mha_model().folder());
  const ModelWeights merged = merge_heads(weights, alternating(weights, {{2}, {0, 1, 3}}, {{0, 1}, {2, 3}}));
  write_model(folder.path(), merged, mha_model().folder());
  const ModelWeights again = load_weights(folder.path());
  REQUIRE(again.shape.kinds == merged.shape.kinds);
  REQUIRE(again.shape.layers == merged.shape.layers);
  REQUIRE(again.shape.kinds[0].gqa().group_sizes == std::vector{1, 3});
  REQUIRE(generated(again) == generated(merged));
}

TEST_CASE("BLOOM is regrouped: its heads move with their slopes and biases, and it is read again", "[regroup]") {
  for (const char* variant : {"bloom", "bloom_six_heads"}) {
    const ModelWeights weights = load_weights(kFamilyFolder / variant);
    const int heads = weights.shape.heads().num_key_value_heads;
    HeadGroups moved;
    for (int head = heads - 1; head >= 0; --head) moved.push_back({head});
    const std::vector<Logits> before = generated(weights);
    require_near(generated(merge_heads(weights, alternating(weights, moved, moved))), before);

    ModelWeights alike = load_weights(kFamilyFolder / variant);
    copy_rows(alike, 0, 3, Parts::all);
    copy_rows(alike, 1, 2, Parts::all);
    HeadGroups unequal{{0, 3}, {1, 2}}, single = unequal;
    for (int head = 4; head < heads; ++head) single.push_back({head});
    const ModelWeights merged = merge_heads(alike, alternating(alike, single, single));
    require_near(generated(merged), generated(alike));
    const OutputFolder folder(variant);
    write_model(folder.path(), merged, kFamilyFolder / variant);
    const ModelWeights again = load_weights(folder.path());
    REQUIRE(again.shape.kinds == merged.shape.kinds);
    REQUIRE(generated(again) == generated(merged));
  }
}

TEST_CASE("models of all families with heads to merge are written with fewer, and read again", "[regroup]") {
  for (const std::string& variant : kFamilyVariants) {
    INFO(variant);
    const ModelWeights weights = load_weights(kFamilyFolder / variant);
    if (weights.shape.kinds[0].gqa().qk_norm == QkNorm::whole) continue;  // refused: the norm is of all heads at once
    const HeadGroups one = neighbour_groups(weights.shape.heads().num_key_value_heads, 1);
    const ModelWeights merged = merge_heads(weights, alternating(weights, one, one));
    const OutputFolder folder("family");
    write_model(folder.path(), merged, kFamilyFolder / variant);
    const ModelWeights again = load_weights(folder.path());
    REQUIRE(again.shape.heads().num_key_value_heads == 1);
    REQUIRE(generated(again) == generated(merged));
  }
}

TEST_CASE("groups of key norms are of any sizes, and run", "[regroup]") {
  ModelWeights weights = load_weights(mha_model().folder());
  const auto statistics = observe_heads(weights, some_text(), {});
  const Regrouping result =
      regroup(weights, {.num_key_value_heads = 2, .method = GroupingMethod::key_norm}, statistics);
  for (const RegroupedLayer& layer : result.layers) REQUIRE(layer.groups.size() == 2);
  for (const Logits& row : logits_of(result.weights))
    REQUIRE(std::ranges::all_of(row, [](float value) { return std::isfinite(value); }));
}

TEST_CASE("a configuration of groups says what is wrong with it", "[regroup]") {
  const auto parse = [](const std::string& more) {
    return parse_model_shape(grouped_config(more), "config.json", "m");
  };
  const ModelShape sound = parse(R"("layer_kv_heads": [2, 4], "kv_head_queries": [1, 3, 1, 1, 1, 1])");
  REQUIRE(sound.layer(0).gqa().group_sizes == std::vector{1, 3});
  REQUIRE(sound.layer(1).gqa().group_sizes.empty());
  REQUIRE(sound.layer(1).gqa().heads.num_key_value_heads == 4);
  for (const auto& [more, why] :
       {std::pair{R"("layer_kv_heads": [2], "kv_head_queries": [1, 3])", "one entry for each of the 2 layers"},
        {R"("layer_kv_heads": [2, 0], "kv_head_queries": [1, 3])", "must be positive"},
        {R"("layer_kv_heads": [2, 2], "kv_head_queries": [1, 3, 2])", "too few entries"},
        {R"("layer_kv_heads": [1, 1], "kv_head_queries": [4, 4, 4])", "too many entries"},
        {R"("layer_kv_heads": [2, 2], "kv_head_queries": [1, 3, 1, 2])", "4 together"},
        {R"("layer_kv_heads": [2, 2], "kv_head_queries": [0, 4, 1, 3])", "one or more each"},
        {R"("layer_kv_heads": [1, 1], "kv_head_queries": [4, 4], "alibi_heads": [0])", "no ALiBi"}})
    REQUIRE_THROWS_WITH(parse(more), ContainsSubstring(why));
  REQUIRE_THROWS_WITH(parse_model_shape(R"({"model_type": "dculab_grouped"})", "config.json", "m"),
                      ContainsSubstring("grouped_model_type"));
}

}  // namespace dculab::engine
