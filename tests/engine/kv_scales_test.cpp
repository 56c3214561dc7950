// Scales of an FP8 KV cache: found on text, written beside the attention's weights, read again, and used.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "engine/calibration/kv_ranges.hpp"
#include "engine/checkpoint/kv_scales.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/quantize/calibration.hpp"
#include "engine/regroup/head_merge.hpp"
#include "tests/engine/support/gpu_golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

const fs::path kGqaModel = kGoldenFolder / "gqa";
constexpr int kScaledTokens = 64;

// Of a layer, as an F32 cache of one block holds them: [K, V][KV heads, block, head_dim].
KvRange range_in_cache(const ModelWeights& weights, const std::vector<TokenId>& tokens, int layer) {
  Stepper stepper(weights, {.block_size = kScaledTokens, .kv_dtype = Dtype::f32});
  static_cast<void>(stepper.step({{0, Phase::prefill, tokens}}));
  std::vector<std::byte> bytes(stepper.executor().bytes_per_block());
  stepper.executor().read_blocks({stepper.blocks(0).data(), 1}, bytes);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  const std::size_t half = values.size() / static_cast<std::size_t>(2 * weights.shape.num_layers());
  const auto largest = [&](std::size_t part) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(part * half);
    return std::accumulate(first, first + static_cast<std::ptrdiff_t>(half), 0.0F,
                           [](float most, float value) { return std::max(most, std::fabs(value)); });
  };
  return {largest(2 * static_cast<std::size_t>(layer)), largest(2 * static_cast<std::size_t>(layer) + 1)};
}

// Keys `factor` times as large and queries as much smaller: scores, and so all logits, stay.
ModelWeights with_loud_keys(const ModelWeights& weights, float factor) {
  ModelWeights loud = widened_to_f32(weights);
  for (const TensorSlot& slot : tensor_slots(loud)) {
    if (slot.slot != WeightSlot::qkv_proj || slot.part == kV) continue;
    const auto* const values = static_cast<const float*>(slot.view->data);
    auto scaled = std::make_shared<std::vector<float>>(values, values + slot.values());
    for (float& value : *scaled) value *= slot.part == kK ? factor : 1 / factor;
    slot.view->data = scaled->data();
    loud.memory.push_back(std::move(scaled));
  }
  return loud;
}

double logits_error(const std::vector<Logits>& a, const std::vector<Logits>& b) { return relative_difference(a, b); }

std::vector<Logits> last_logits(Stepper stepper, const std::vector<TokenId>& tokens) {
  const std::vector<TokenId> most(tokens.begin(), tokens.end() - 1);
  static_cast<void>(stepper.step({{0, Phase::prefill, most}}));
  return stepper.step({{0, Phase::decode, {tokens.back()}}});
}

fs::path written_with(const TemporaryFolder& folder, const std::map<std::string, float>& scales) {
  const fs::path output = folder.path("out");
  write_quantized_model({.source = kGqaModel, .kv_scales = scales}, output);
  return output;
}

}  // namespace

TEST_CASE("ranges of keys and values are those that the KV cache holds, and scales leave twice as much room") {
  const ModelWeights weights = load_weights(kGqaModel);
  const std::vector<TokenId> tokens = random_tokens(kScaledTokens, weights.shape.vocab_size);
  const std::vector<KvRange> ranges = observe_kv_ranges(weights, tokens, {.on_progress = {}});
  REQUIRE(ranges.size() == static_cast<std::size_t>(weights.shape.num_layers()));
  for (std::size_t layer = 0; layer < ranges.size(); ++layer) {
    const KvRange expected = range_in_cache(weights, tokens, static_cast<int>(layer));
    CHECK(ranges[layer].k == expected.k);
    CHECK(ranges[layer].v == expected.v);
    CHECK(ranges[layer].k > 0);
  }
  const std::vector<kernels::Fp8KvScales> scales = e4m3_scales(ranges);
  for (std::size_t layer = 0; layer < ranges.size(); ++layer) {
    CHECK(scales[layer].k * 224 == Approx(ranges[layer].k));
    CHECK(scales[layer].v * 224 == Approx(ranges[layer].v));
  }
  const std::vector<KvRange> silent{{0, 3}};
  CHECK(e4m3_scales(silent)[0].k == 1);
  REQUIRE_THROWS_WITH(observe_kv_ranges(load_weights(kFamilyFolder / "deepseek_v3"), tokens, {.on_progress = {}}),
                      ContainsSubstring("layers that cache none"));
}

TEST_CASE("scales of the KV cache come back from the folder, whatever program named them") {
  ModelWeights weights = load_weights(kGqaModel);
  REQUIRE(weights.kv_scales.empty());
  std::vector<kernels::Fp8KvScales> scales(weights.layers.size());
  for (std::size_t layer = 0; layer < scales.size(); ++layer)
    scales[layer] = {0.5F + static_cast<float>(layer), 0.25F + static_cast<float>(layer)};
  const std::map<std::string, float> tensors = kv_scale_tensors(weights, scales);
  REQUIRE(tensors.size() == 2 * scales.size());
  REQUIRE(tensors.at("model.layers.1.self_attn.v_scale") == 1.25F);
  const auto read_from = [&](const std::string& key, const std::string& value) {
    std::map<std::string, float> renamed;
    for (const auto& [name, scale] : tensors) {
      const std::string prefix = name.substr(0, name.rfind('.') + 1);
      renamed[prefix + (name.ends_with("k_scale") ? key : value)] = scale;
    }
    const TemporaryFolder folder;
    return load_weights(written_with(folder, renamed)).kv_scales;
  };
  for (const auto& [key, value] :
       {std::pair{"k_scale", "v_scale"}, {"attn.k_scale", "attn.v_scale"}, {"k_proj.k_scale", "v_proj.v_scale"}}) {
    INFO(key);
    const std::vector<kernels::Fp8KvScales> read = read_from(key, value);
    REQUIRE(read.size() == scales.size());
    for (std::size_t layer = 0; layer < scales.size(); ++layer)
      CHECK((read[layer].k == scales[layer].k && read[layer].v == scales[layer].v));
  }
}

TEST_CASE("scales of the KV cache that cannot be used are refused") {
  ModelWeights weights = load_weights(kGqaModel);
  const std::map<std::string, float> all =
      kv_scale_tensors(weights, std::vector<kernels::Fp8KvScales>(weights.layers.size()));
  const auto refused = [&](auto change, const std::string& text) {
    std::map<std::string, float> tensors = all;
    change(tensors);
    const TemporaryFolder folder;
    REQUIRE_THROWS_WITH(load_weights(written_with(folder, tensors)), ContainsSubstring(text));
  };
  const std::string one = "model.layers.1.self_attn.k_scale";
  refused([&](auto& tensors) { tensors.erase(one); }, "'" + one + "' is missing: other keys and values have scales");
  refused([&](auto& tensors) { tensors[one] = 0; }, "is not a number above 0");
  refused([&](auto& tensors) { tensors[one] = NAN; }, "is not a number above 0");
}

TEST_CASE("scales of the KV cache are of the heads that they were found for: others have none") {
  ModelWeights weights = load_weights(kGqaModel);
  const int heads = weights.shape.heads().num_key_value_heads;
  REQUIRE(heads == 2);
  weights.kv_scales.assign(weights.layers.size(), {0.5F, 0.25F});
  weights.kv_calibration = [shape = weights.shape] { return made_up_calibration(shape); };
  const auto merged = [&](const HeadGroups& last) {
    std::vector<LayerMerge> layers(weights.layers.size(), {neighbour_groups(heads, heads), {}, {}});
    layers.back().groups = last;
    return merge_heads(weights, layers);
  };
  const auto written = [&](const ModelWeights& model) {
    const TemporaryFolder folder;
    write_model(folder.path("out"), model, kGqaModel);
    return load_weights(folder.path("out")).kv_scales;
  };
  const ModelWeights same = merged({{0}, {1}}), fewer = merged({{0, 1}}), moved = merged({{1}, {0}});
  REQUIRE(written(same).size() == weights.layers.size());
  CHECK((written(same)[0].k == 0.5F && written(same)[1].v == 0.25F));
  CHECK(same.kv_calibration);
  for (const ModelWeights& other : {fewer, moved}) {
    CHECK(other.kv_scales.empty());
    CHECK_FALSE(other.kv_calibration);
    CHECK(written(other).empty());
  }
}

TEST_CASE("keys beyond 448 need scales in an FP8 cache, and with them lose what others lose") {
  const ModelWeights plain = with_wide_heads(load_weights(kGqaModel));
  const std::vector<TokenId> tokens = random_tokens(kScaledTokens, plain.shape.vocab_size);
  const std::vector<Logits> exact = last_logits(Stepper(plain, {.kv_dtype = Dtype::f32}), tokens);
  const float largest = observe_kv_ranges(plain, tokens, {.on_progress = {}})[0].k;
  const float factor = std::exp2(std::ceil(std::log2(100 * 448 / largest)));
  ModelWeights loud = with_loud_keys(plain, factor);
  REQUIRE(logits_error(last_logits(Stepper(loud, {.kv_dtype = Dtype::f32}), tokens), exact) < 1e-4);
  const StepperOptions fp8{.kv_dtype = Dtype::fp8_e4m3};
  const double usual = logits_error(last_logits(Stepper(plain, fp8), tokens), exact);
  const double saturated = logits_error(last_logits(Stepper(loud, fp8), tokens), exact);
  loud.kv_scales = e4m3_scales(observe_kv_ranges(loud, tokens, {.on_progress = {}}));
  const std::vector<Logits> scaled = last_logits(Stepper(loud, fp8), tokens);
  INFO("usual " << usual << " saturated " << saturated << " scaled " << logits_error(scaled, exact));
  CHECK(saturated > 4 * usual);
  CHECK(logits_error(scaled, exact) < 2 * usual);
  Stepper gpu(host_gpu(64), loud, {.kv_dtype = Dtype::fp8_e4m3, .activation_dtype = Dtype::f32});
  CHECK(logits_error(last_logits(std::move(gpu), tokens), scaled) < 0.5 * usual);
  StepperOptions divided = fp8;
  divided.division.tensor_parallel_size = 2;
  CHECK(logits_error(last_logits(Stepper(loud, divided), tokens), scaled) < 0.5 * usual);
}

}  // namespace dculab::engine
