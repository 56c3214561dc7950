// Weights in memory: loaded, random, regrouped.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "engine/checkpoint/finite_weights.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "kernels/cpu/cpu_kernels.hpp"
#include "model/folder/model_config.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

std::vector<float> values_of(const kernels::WeightView& view, int columns) {
  std::vector<float> values(static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(columns));
  widen(view.data, view.dtype, values);
  return values;
}

ModelShape small_shape(Dtype dtype) {
  ModelShape shape = read_model_shape(kGoldenFolder / "mha");
  shape.dtype = dtype;
  return shape;
}

}  // namespace

TEST_CASE("weights keep the dtype and the bytes of the file") {
  for (const auto& [variant, dtype] :
       {std::pair{"mha", Dtype::f32}, std::pair{"mqa", Dtype::f16}, std::pair{"tied", Dtype::bf16}}) {
    const auto folder = kGoldenFolder / variant;
    const ModelWeights copied = load_weights(folder);
    const ModelWeights mapped = load_weights(folder, WeightMemory::mapped);
    REQUIRE(copied.shape.dtype == dtype);
    REQUIRE(copied.layers.size() == 2);
    const Checkpoint checkpoint(folder);
    const auto bytes = checkpoint.find("model.layers.1.mlp.down_proj.weight").tensor->bytes;
    for (const ModelWeights* weights : {&copied, &mapped}) {
      REQUIRE(weights->layers[1][WeightSlot::down_proj].weights[0].dtype == dtype);
      REQUIRE(std::memcmp(weights->layers[1][WeightSlot::down_proj].weights[0].data, bytes.data(), bytes.size()) == 0);
    }
  }
}

TEST_CASE("a weight that is no number is refused with its tensor, wherever it is") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    INFO(name(dtype));
    std::vector<float> values(5000, 1.0F);
    std::vector<std::byte> stored(values.size() * static_cast<std::size_t>(bits(dtype)) / 8 + 1);
    const std::span<std::byte> unaligned = std::span(stored).subspan(1);
    values[7] = 65504;  // the largest of F16
    narrow(values, dtype, stored.data());
    std::memmove(unaligned.data(), stored.data(), unaligned.size());
    REQUIRE(all_finite(unaligned, dtype));
    for (const std::size_t place : {std::size_t{0}, std::size_t{2500}, values.size() - 1})
      for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        std::vector<float> damaged = values;
        damaged[place] = wrong;
        narrow(damaged, dtype, stored.data());
        std::memmove(unaligned.data(), stored.data(), unaligned.size());
        REQUIRE_FALSE(all_finite(unaligned, dtype));
      }
  }
}

TEST_CASE("a tied head is the embedding") {
  const ModelWeights weights = load_weights(kGoldenFolder / "tied");
  REQUIRE(weights.outer[WeightSlot::lm_head].weights[0].data ==
          weights.outer[WeightSlot::embed_tokens].weights[0].data);
}

TEST_CASE("random weights are reproducible and keep activations finite") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const ModelWeights weights = random_weights(small_shape(dtype), 5);
    const ModelWeights same = random_weights(small_shape(dtype), 5);
    const ModelWeights other = random_weights(small_shape(dtype), 6);
    const auto values = values_of(weights.layers[0][WeightSlot::up_proj].weights[kGate], weights.shape.hidden_size);
    REQUIRE(values == values_of(same.layers[0][WeightSlot::up_proj].weights[kGate], weights.shape.hidden_size));
    REQUIRE(values != values_of(other.layers[0][WeightSlot::up_proj].weights[kGate], weights.shape.hidden_size));
    double sum_of_squares = 0;
    for (const float value : values) sum_of_squares += static_cast<double>(value) * value;
    const double variance = sum_of_squares / static_cast<double>(values.size());
    REQUIRE_THAT(variance * weights.shape.hidden_size, WithinRel(1.0, 0.1));
    Stepper stepper(weights);
    const std::vector<Logits> rows = stepper.step({{0, Phase::prefill, {1, 2, 3, 4}}});
    for (const float logit : rows[0]) REQUIRE(std::isfinite(logit));
  }
  REQUIRE_THROWS_AS(random_weights(small_shape(Dtype::int8), 1), InputError);
}

TEST_CASE("random quantized weights are packed layer matrices that keep the scale of what they multiply") {
  for (const Dtype dtype : {Dtype::int4, Dtype::int8}) {
    ModelShape shape = small_shape(Dtype::f16);
    shape.quantization = WeightFormat{dtype, dtype == Dtype::int4 ? 16 : 0};
    const ModelWeights weights = random_weights(shape, 5);
    const kernels::WeightView& matrix = weights.layers[0][WeightSlot::down_proj].weights[0];
    REQUIRE(matrix.dtype == dtype);
    REQUIRE(matrix.group_size == (dtype == Dtype::int4 ? 16 : shape.kinds[0].mlp.intermediate_size));
    REQUIRE(weights.outer[WeightSlot::embed_tokens].weights[0].dtype == Dtype::f16);
    REQUIRE(weights.layers[0][WeightSlot::attention_norm].weights[0].dtype == Dtype::f16);
    std::vector<float> x(static_cast<std::size_t>(shape.kinds[0].mlp.intermediate_size)),
        y(static_cast<std::size_t>(matrix.rows));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * i % 7 < 3 ? 1.0F : -1.0F;
    kernels::cpu::ThreadPool threads(1);
    kernels::cpu::Workspace workspace;
    kernels::MatmulArgs args;
    args.x = x.data(), args.y = y.data(), args.m = 1, args.k = shape.kinds[0].mlp.intermediate_size,
    args.weights[0] = matrix;
    kernels::cpu::matmul(threads, workspace, args);
    double sum_of_squares = 0;
    for (const float value : y) sum_of_squares += static_cast<double>(value) * value;
    REQUIRE_THAT(sum_of_squares / matrix.rows, WithinRel(1.0, 0.5));
  }
  ModelShape shape = small_shape(Dtype::f16);
  shape.quantization = WeightFormat{Dtype::int4, shape.kinds[0].mlp.intermediate_size - 8};
  REQUIRE_THROWS_AS(random_weights(shape, 1), InputError);
}

TEST_CASE("regrouping averages neighbouring KV heads") {
  const ModelWeights weights = load_weights(kGoldenFolder / "mha");
  const int hidden = weights.shape.hidden_size;
  const auto head_values = static_cast<std::size_t>(weights.shape.kinds[0].gqa().heads.head_dim * hidden);
  for (const int kv_heads : {1, 2}) {
    const ModelWeights pooled = regrouped(weights, kv_heads);
    const int group = 4 / kv_heads;
    REQUIRE(pooled.shape.kinds[0].gqa().heads.num_key_value_heads == kv_heads);
    REQUIRE(pooled.layers[0][WeightSlot::qkv_proj].weights[kQ].data ==
            weights.layers[0][WeightSlot::qkv_proj].weights[kQ].data);
    REQUIRE(pooled.layers[1][WeightSlot::qkv_proj].weights[kV].rows ==
            kv_heads * weights.shape.kinds[0].gqa().heads.head_dim);
    const auto before = values_of(weights.layers[1][WeightSlot::qkv_proj].weights[kV], hidden);
    const auto after = values_of(pooled.layers[1][WeightSlot::qkv_proj].weights[kV], hidden);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::size_t first = i / head_values * static_cast<std::size_t>(group) * head_values + i % head_values;
      float mean = 0;
      for (std::size_t head = 0; head < static_cast<std::size_t>(group); ++head)
        mean += before[first + head * head_values] / static_cast<float>(group);
      REQUIRE_THAT(after[i], WithinAbs(mean, 1e-6));
    }
  }
  REQUIRE_THROWS_AS(regrouped(weights, 3), InputError);
  REQUIRE_THROWS_AS(regrouped(weights, 8), InputError);
}

TEST_CASE("regrouping averages the biases of K and V too") {
  const ModelWeights weights = load_weights(kFamilyFolder / "qwen2");
  const ModelWeights pooled = regrouped(weights, 1);
  const auto head_dim = static_cast<std::size_t>(weights.shape.kinds[0].gqa().heads.head_dim);
  const auto before = values_of(weights.layers[1][WeightSlot::qkv_proj].biases[kK], 1);
  const auto after = values_of(pooled.layers[1][WeightSlot::qkv_proj].biases[kK], 1);
  REQUIRE(after.size() == head_dim);
  for (std::size_t i = 0; i < head_dim; ++i)
    REQUIRE_THAT(after[i], WithinAbs((before[i] + before[i + head_dim]) / 2, 1e-6));
  REQUIRE(pooled.layers[1][WeightSlot::qkv_proj].biases[kQ].data ==
          weights.layers[1][WeightSlot::qkv_proj].biases[kQ].data);
}

TEST_CASE("fused Q, K and V come apart group by group") {
  const auto folder = kFamilyFolder / "falcon_40b";
  const ModelWeights weights = load_weights(folder);
  const Checkpoint checkpoint(folder);
  const auto fused = checkpoint.find("transformer.h.1.self_attention.query_key_value.weight").tensor->bytes;
  const std::size_t head_bytes =
      static_cast<std::size_t>(weights.shape.kinds[0].gqa().heads.head_dim * weights.shape.hidden_size) * 2;
  // Heads in the file: two of Q, K, V, and again.
  const auto same = [&](const kernels::WeightView& view, std::size_t head, std::size_t in_file) {
    const auto* const values = static_cast<const std::byte*>(view.data);
    return std::memcmp(values + head * head_bytes, fused.data() + in_file * head_bytes, head_bytes) == 0;
  };
  const WeightSlots& layer = weights.layers[1];
  REQUIRE(fused.size() == 8 * head_bytes);
  for (const auto& [head, in_file] : {std::pair{0U, 0U}, {1U, 1U}, {2U, 4U}, {3U, 5U}})
    REQUIRE(same(layer[WeightSlot::qkv_proj].weights[kQ], head, in_file));
  for (const auto& [head, in_file] : {std::pair{0U, 2U}, {1U, 6U}})
    REQUIRE(same(layer[WeightSlot::qkv_proj].weights[kK], head, in_file));
  for (const auto& [head, in_file] : {std::pair{0U, 3U}, {1U, 7U}})
    REQUIRE(same(layer[WeightSlot::qkv_proj].weights[kV], head, in_file));
}

TEST_CASE("a model whose KV heads are already alike within a group does not change when regrouped") {
  const GoldenModel golden("mha");
  ModelWeights alike = load_weights(golden.folder());
  const auto head_bytes =
      static_cast<std::size_t>(alike.shape.kinds[0].gqa().heads.head_dim * alike.shape.hidden_size) * sizeof(float);
  for (WeightSlots& layer : alike.layers)
    for (kernels::WeightView* view :
         {&layer[WeightSlot::qkv_proj].weights[kK], &layer[WeightSlot::qkv_proj].weights[kV]}) {
      auto* const heads = static_cast<std::byte*>(const_cast<void*>(view->data));  // our own copy of the file
      for (const std::size_t head : {1U, 3U})
        std::memcpy(heads + head * head_bytes, heads + (head - 1) * head_bytes, head_bytes);
    }
  Stepper multi_head(alike);
  Stepper grouped(regrouped(alike, 2));
  const std::vector<Feed> prompt{{0, Phase::prefill, golden.prompts()[0].tokens}};
  REQUIRE(grouped.step(prompt) == multi_head.step(prompt));
}

TEST_CASE("stored values round to nearest even") {
  const std::vector<float> values{1.0F, -2.5F, 65504.0F, 0x1p-24F, 1.0F + 0x1p-11F, 1.0F + 0x1.8p-10F, 0.0F};
  std::vector<std::uint16_t> stored(values.size());
  std::vector<float> back(values.size());
  narrow(values, Dtype::f16, stored.data());
  widen(stored.data(), Dtype::f16, back);
  REQUIRE(back == std::vector<float>{1.0F, -2.5F, 65504.0F, 0x1p-24F, 1.0F, 1.0F + 0x1p-9F, 0.0F});
  narrow(values, Dtype::bf16, stored.data());
  widen(stored.data(), Dtype::bf16, back);
  REQUIRE(back == std::vector<float>{1.0F, -2.5F, 65536.0F, 0x1p-24F, 1.0F, 1.0F, 0.0F});
}

}  // namespace dculab::engine
