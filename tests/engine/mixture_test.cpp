// Mixtures of experts in the engine: which experts tokens go to, and how their weights are read, packed and refused.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/model_writer.hpp"
#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/quantize/model_quantizer.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// The experts of each token, in order of their numbers: [layers with experts][tokens].
using Chosen = std::vector<std::vector<std::vector<int>>>;

// The experts that have choices in a histogram of one token: [layers with experts].
std::vector<std::vector<int>> chosen_in(const ExpertHistogram& histogram) {
  std::vector<std::vector<int>> chosen;
  for (const std::vector<std::int64_t>& counts : histogram.choices) {
    if (counts.empty()) continue;
    chosen.emplace_back();
    for (std::size_t expert = 0; expert < counts.size(); ++expert)
      if (counts[expert] > 0) chosen.back().push_back(static_cast<int>(expert));
  }
  return chosen;
}

Chosen expected_choices(const GoldenModel& golden, std::size_t prompt, std::size_t per_token) {
  const auto experts = golden.read<std::int32_t>("experts." + std::to_string(prompt));
  const std::size_t tokens = golden.prompts()[prompt].tokens.size();
  Chosen chosen(experts.size() / (tokens * per_token), std::vector<std::vector<int>>(tokens));
  for (std::size_t i = 0; i < experts.size(); ++i)
    chosen[i / (tokens * per_token)][i / per_token % tokens].push_back(experts[i]);
  for (auto& layer : chosen)
    for (std::vector<int>& token : layer) std::ranges::sort(token);
  return chosen;
}

const Experts& experts_of(const ModelShape& shape) { return *shape.kinds.back().experts; }

}  // namespace

TEST_CASE("mixtures: every token goes to the experts that transformers gives it", "[families]") {
  std::vector<std::string> variants = kMixtureVariants;
  variants.insert(variants.end(), kLatentVariants.begin(), kLatentVariants.end());
  for (const std::string& variant : variants) {
    const GoldenModel golden(variant, kFamilyFolder);
    Stepper stepper(load_weights(golden.folder()));
    const auto per_token = static_cast<std::size_t>(experts_of(stepper.executor().shape()).num_experts_per_tok);
    for (std::size_t prompt = 0; prompt < golden.prompts().size(); ++prompt) {
      const Chosen expected = expected_choices(golden, prompt, per_token);
      const std::vector<TokenId>& tokens = golden.prompts()[prompt].tokens;
      for (std::size_t token = 0; token < tokens.size(); ++token) {
        (void)stepper.step({{static_cast<SequenceId>(prompt), Phase::prefill, {tokens[token]}}});
        const auto chosen = chosen_in(stepper.executor().take_expert_histogram());
        REQUIRE(chosen.size() == expected.size());
        for (std::size_t layer = 0; layer < chosen.size(); ++layer) {
          INFO(variant << ", prompt " << prompt << ", token " << token << ", layer " << layer);
          REQUIRE(chosen[layer] == expected[layer][token]);
        }
      }
    }
  }
}

TEST_CASE("mixtures: the histogram counts each choice of a step once, and begins anew when it is taken") {
  const GoldenModel golden("glm4_moe", kFamilyFolder);
  Stepper stepper(load_weights(golden.folder()));
  REQUIRE(stepper.executor().take_expert_histogram().is_empty());
  (void)stepper.step({{0, Phase::prefill, golden.prompts()[0].tokens}, {1, Phase::prefill, {3, 4}}});
  const ExpertHistogram histogram = stepper.executor().take_expert_histogram();
  REQUIRE(histogram.layer_steps == 1);  // the first layer is dense
  REQUIRE(histogram.choices[0].empty());
  REQUIRE(histogram.choices[1].size() == 8);
  REQUIRE(std::accumulate(histogram.choices[1].begin(), histogram.choices[1].end(), std::int64_t{0}) == 3 * (37 + 2));
  REQUIRE(histogram.touched_experts == std::ranges::count_if(histogram.choices[1], [](auto n) { return n > 0; }));
  REQUIRE(stepper.executor().take_expert_histogram().is_empty());
}

TEST_CASE("mixtures: a router that gives no number is one clear error") {
  const GoldenModel golden("mixtral", kFamilyFolder);
  ModelWeights weights = load_weights(golden.folder());
  const std::vector<float> norm(static_cast<std::size_t>(weights.shape.hidden_size), std::numeric_limits<float>::max());
  kernels::WeightView& view = weights.layers[1][WeightSlot::mlp_norm].weights[0];
  view = {norm.data(), Dtype::f32, view.rows};
  Stepper stepper(weights);
  REQUIRE_THROWS_WITH(stepper.step({{0, Phase::prefill, {3, 4, 5}}}),
                      ContainsSubstring("layer 1: the router gives 3 of the step's tokens a logit that is NaN"));
}

TEST_CASE("mixtures: experts in two tensors a layer are those of one tensor each") {
  const TemporaryFolder folder;
  const ModelWeights fused = load_weights(kFamilyFolder / "mixtral_fused");
  write_model(folder.path("apart"), fused, kFamilyFolder / "mixtral_fused");
  REQUIRE(Checkpoint(folder.path("apart")).find("model.layers.1.block_sparse_moe.experts.5.w3.weight").tensor !=
          nullptr);
  const ModelWeights apart = load_weights(folder.path("apart"));
  const std::vector<Feed> feeds{{0, Phase::prefill, {5, 6, 7, 8, 9}}};
  Stepper one(fused), other(apart);
  REQUIRE(one.step(feeds) == other.step(feeds));
}

TEST_CASE("mixtures: quantized experts are read back as they were written") {
  const GoldenModel golden("qwen3_moe", kFamilyFolder);
  const ModelWeights weights = load_weights(golden.folder());
  const QuantizeOptions options = options_of(QuantizationMethod::rtn, 4, 8, QuantizedFormat::gptq);
  REQUIRE(problems(options, weights).empty());
  const QuantizedModel model = quantize_model(weights, {}, options, {});
  const QuantizedFolder written = to_write(model, options, golden.folder());
  REQUIRE(written.modules.contains("model.layers.1.mlp.experts.7.down_proj"));
  REQUIRE_FALSE(written.modules.contains("model.layers.1.mlp.gate"));
  const TemporaryFolder folder;
  write_quantized_model(written, folder.path("model"));
  const ModelWeights packed = load_weights(folder.path("model"));
  REQUIRE(packed.layers[0][WeightSlot::expert_up_proj].expert_weights[kUp][3].dtype == Dtype::int4);
  REQUIRE(packed.layers[0][WeightSlot::router].weights[0].dtype == Dtype::f16);

  // The same values in F32.
  ModelWeights widened = weights;
  std::vector<std::vector<float>> kept;
  for (const TensorSlot& slot : tensor_slots(widened)) {
    kept.emplace_back(slot.values());
    const auto module = written.modules.find(slot.name.substr(0, slot.name.rfind('.')));
    if (module == written.modules.end())
      widen(slot.view->data, slot.view->dtype, kept.back());
    else
      kept.back() = dequantized(*module->second);
    *slot.view = {kept.back().data(), Dtype::f32, slot.rows};
  }
  widened.shape.dtype = Dtype::f32;
  Stepper exact(widened), quantized(packed);
  const std::vector<Feed> feeds{{0, Phase::prefill, golden.prompts()[0].tokens}};
  REQUIRE(largest_difference(quantized.step(feeds)[0], exact.step(feeds)[0].data()) <= kTolerance);
}

TEST_CASE("mixtures: calibration, and quantizing experts that share a tensor, are refused") {
  const ModelWeights weights = load_weights(kFamilyFolder / "mixtral");
  const QuantizeOptions options = options_of(QuantizationMethod::rtn, 4, 8, QuantizedFormat::gptq);
  const std::vector<TokenId> tokens{3, 4, 5};
  REQUIRE_THROWS_WITH(quantize_model(weights, tokens, options, {}), ContainsSubstring("mixture of experts"));
  const TemporaryFolder folder;
  const ModelWeights fused = load_weights(kFamilyFolder / "mixtral_fused");
  const QuantizedModel model = quantize_model(fused, {}, options, {});
  REQUIRE_THROWS_WITH(
      write_quantized_model(to_write(model, options, kFamilyFolder / "mixtral_fused"), folder.path("model")),
      ContainsSubstring("save experts that share a tensor one by one"));
}

TEST_CASE("mixtures: random int4 experts run, and give a token the same bits alone and in a batch") {
  for (const char* const variant : {"qwen2_moe", "qwen3_moe", "glm4_moe"}) {
    INFO(variant);
    ModelShape shape = load_weights(kFamilyFolder / variant).shape;
    shape.dtype = Dtype::bf16;
    shape.quantization = WeightFormat{Dtype::int4, 8};
    const ModelWeights weights = random_weights(shape, 3);
    const SlotWeights& down = weights.layers[1][WeightSlot::expert_down_proj];
    REQUIRE(std::ssize(down.expert_weights[0]) == experts_of(shape).num_experts);
    for (const kernels::WeightView& view : down.expert_weights[0]) REQUIRE(view.dtype == Dtype::int4);
    REQUIRE(weights.layers[1][WeightSlot::router].weights[0].dtype == Dtype::bf16);
    std::vector<Feed> feeds;
    for (SequenceId sequence = 0; sequence < 20; ++sequence)
      feeds.push_back({sequence, Phase::prefill, {static_cast<TokenId>(3 + sequence), 7, 9}});
    Stepper together(weights, {.num_threads = 2}), alone(weights, {.block_size = 4, .num_threads = 1});
    const std::vector<Logits> rows = together.step(feeds);
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      REQUIRE(std::ranges::all_of(rows[i], [](float logit) { return std::isfinite(logit); }));
      REQUIRE(alone.step({feeds[i]})[0] == rows[i]);
    }
  }
}

}  // namespace dculab::engine
