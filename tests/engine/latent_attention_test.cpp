// Latent and cross-layer attention in the engine: both forms of the one, what they cache, quantized weights, and what
// they are refused. Against transformers they are held in family_golden_test.cpp.
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/generate/generator.hpp"
#include "engine/quantize/model_quantizer.hpp"
#include "engine/regroup/mean_pool.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/allocation_counter.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Long enough for several pieces of an expansion, partitions of attention and blocks of every size.
constexpr int kLongPrompt = 600;

ModelWeights long_context_weights(std::optional<WeightFormat> format = std::nullopt) {
  ModelShape shape = load_weights(kFamilyFolder / "deepseek_v3").shape;
  shape.max_position_embeddings = 1024;
  shape.quantization = format;
  return random_weights(shape, 11);
}

std::vector<TokenId> long_prompt() { return random_tokens(kLongPrompt, 96); }

std::vector<std::string> latent_and_cross_layer() {
  std::vector<std::string> all = kLatentVariants;
  all.insert(all.end(), kCrossLayerVariants.begin(), kCrossLayerVariants.end());
  return all;
}

// Prompt 0 prefilled but for its last three tokens, then these decoded; the logits of the four steps.
std::vector<Logits> read_prompt(Stepper& stepper, const GoldenPrompt& prompt) {
  const std::size_t end = prompt.tokens.size() - 3;
  std::vector<Logits> logits = stepper.step({{0, Phase::prefill, first(prompt.tokens, end)}});
  for (std::size_t i = end; i < prompt.tokens.size(); ++i)
    logits.push_back(stepper.step({{0, Phase::decode, {prompt.tokens[i]}}})[0]);
  return logits;
}

// A model of such a shape that reads and writes the text of another golden.
ModelWeights latent_text_weights(const std::string& variant) {
  ModelShape shape = load_weights(kFamilyFolder / variant).shape;
  shape.vocab_size = load_weights(kGoldenFolder / "text").shape.vocab_size;
  return random_weights(shape, 5);
}

std::vector<TextRequest> text_requests() {
  std::vector<TextRequest> requests;
  for (const char* const prompt : {"once upon a time", "a", "the machine counted the words of a story",
                                   "the machine counted the words of a story and small words again"})
    requests.push_back({.prompt = prompt, .max_tokens = 20, .eos = EosHandling::ignore});
  return requests;
}

}  // namespace

TEST_CASE("latents: expanded and absorbed, prefill and decode give the logits of transformers") {
  for (const std::string& variant : kLatentVariants) {
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    const GoldenPrompt& prompt = golden.prompts()[0];
    const std::size_t first_row = prompt.tokens.size() - 4;
    for (const LatentForm prefill : {LatentForm::expand, LatentForm::absorb})
      for (const LatentForm decode : {LatentForm::expand, LatentForm::absorb}) {
        INFO(variant << ", prefill " << static_cast<int>(prefill) << ", decode " << static_cast<int>(decode));
        Stepper stepper(weights, {.prefill_latents = prefill, .decode_latents = decode});
        const std::vector<Logits> rows = read_prompt(stepper, prompt);
        for (std::size_t i = 0; i < rows.size(); ++i)
          REQUIRE(largest_difference(rows[i], prompt.logits.data() + (first_row + i) * rows[i].size()) <= kTolerance);
      }
  }
}

TEST_CASE("latents: in one form a token has the same bits computed by decode and by prefill") {
  const ModelWeights weights = long_context_weights();
  for (const LatentForm form : {LatentForm::expand, LatentForm::absorb})
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::int8}) {
      const StepperOptions options{.kv_dtype = dtype, .prefill_latents = form, .decode_latents = form};
      Stepper whole(weights, options), decoded(weights, options);
      const std::vector<TokenId> tokens = random_tokens(80, 96);
      const Logits expected = whole.step({{0, Phase::prefill, tokens}})[0];
      static_cast<void>(decoded.step({{0, Phase::prefill, first(tokens, 70)}}));
      Logits last;
      for (std::size_t i = 70; i < tokens.size(); ++i) last = decoded.step({{0, Phase::decode, {tokens[i]}}})[0];
      CHECK(last == expected);
    }
}

TEST_CASE("latents: a long prompt has the same bits whole, in chunks, in any blocks and on any number of threads") {
  const ModelWeights weights = long_context_weights();
  const std::vector<TokenId> prompt = long_prompt();
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::fp8_e4m3, Dtype::int8}) {
    INFO(name(dtype));
    Stepper stepper(weights, {.kv_dtype = dtype});
    const Logits whole = stepper.step({{0, Phase::prefill, prompt}, {1, Phase::prefill, first(prompt, 300)}})[0];
    const Logits next = stepper.step({{0, Phase::decode, {5}}, {1, Phase::decode, {6}}})[0];
    for (const auto& [block_size, threads, chunk] : {std::tuple{1, 1, 250U}, {64, 3, 97U}}) {
      Stepper other(weights, {.block_size = block_size, .num_threads = threads, .kv_dtype = dtype});
      CHECK(prefill_in_chunks(other, 0, prompt, chunk) == whole);
      CHECK(other.step({{0, Phase::decode, {5}}})[0] == next);
    }
  }
}

TEST_CASE("latents and shared K and V: a smaller cache moves logits by no more than its rounding") {
  for (const std::string& variant : latent_and_cross_layer()) {
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    const GoldenPrompt& prompt = golden.prompts()[1];
    const float* const expected = prompt.logits.data() + (prompt.tokens.size() - 1) * 96;
    for (const auto& [dtype, unit_roundoff] : {std::pair{Dtype::f16, 0x1p-11F},
                                               {Dtype::bf16, 0x1p-8F},
                                               {Dtype::fp8_e4m3, 0x1p-4F},
                                               {Dtype::int8, 1.0F / 254}}) {
      INFO(variant << " " << name(dtype));
      Stepper rounded(weights, {.kv_dtype = dtype});
      const Logits logits = read_prompt(rounded, prompt).back();
      CHECK(largest_difference(logits, expected) > 0);
      CHECK(largest_difference(logits, expected) <= 8 * unit_roundoff * 8);  // logits up to 8
    }
  }
}

TEST_CASE("latents and shared K and V: the cache has the bytes that are predicted, and blocks move with all of them") {
  for (const std::string& variant : latent_and_cross_layer()) {
    const GoldenModel golden(variant, kFamilyFolder);
    const ModelWeights weights = load_weights(golden.folder());
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::fp8_e5m2, Dtype::int8}) {
      INFO(variant << " " << name(dtype));
      const KvCacheOptions options{.num_blocks = 32, .block_size = 4, .dtype = dtype, .num_host_blocks = 16};
      const KvStorage storage(weights.shape, options);
      std::map<void*, double> tensors;  // what layers see, and its bytes a token
      for (int layer = 0; layer < weights.shape.num_layers(); ++layer) {
        const kernels::KvCacheView view = storage.layer(layer);
        const int heads = view.num_kv_heads;
        tensors[view.k] = heads * view.head_dim * bits(dtype) / 8.0;
        tensors.emplace(view.v, heads * view.value_stride() * bits(dtype) / 8.0);
        if (dtype != Dtype::int8) continue;
        const auto scales = view.extras.as<kernels::Int8KvScales>();
        tensors[scales.k] = tensors[scales.v] = heads * 4.0;
      }
      const double bytes = std::accumulate(tensors.begin(), tensors.end(), 0.0,
                                           [](double sum, const auto& tensor) { return sum + tensor.second; });
      CHECK((kv_bytes_per_token(weights.shape, dtype) * 4).value() == 4 * bytes);

      Stepper moved(weights, {.block_size = 4, .kv_dtype = dtype}),
          plain(weights, {.block_size = 4, .kv_dtype = dtype});
      const std::vector<Feed> prompt{{0, Phase::prefill, golden.prompts()[0].tokens}};
      REQUIRE(moved.step(prompt) == plain.step(prompt));
      // The sequence goes on from copies of its blocks.
      std::vector<BlockCopy> copies;
      const auto unused = static_cast<BlockId>(moved.executor().kv_cache().num_blocks - 1);
      copies.push_back({moved.blocks(0)[0], unused});
      moved.executor().copy_blocks(copies);
      moved.blocks(0)[0] = unused;
      CHECK(moved.step({{0, Phase::decode, {7}}}) == plain.step({{0, Phase::decode, {7}}}));
    }
  }
}

TEST_CASE("latents and shared K and V: swapped blocks come back as they were") {
  for (const std::string& variant : latent_and_cross_layer())
    for (const Dtype dtype : {Dtype::f16, Dtype::int8}) {
      const ModelShape shape = load_weights(kFamilyFolder / variant).shape;
      const KvCacheOptions options{.num_blocks = 6, .block_size = 4, .dtype = dtype, .num_host_blocks = 2};
      KvStorage storage(shape, options), untouched(shape, options);
      for (KvStorage* each : {&storage, &untouched}) each->fill_randomly(4);
      storage.swap_blocks(std::vector<BlockCopy>{{0, 1}}, {});
      storage.copy_blocks(std::vector<BlockCopy>{{3, 0}});
      storage.swap_blocks({}, std::vector<BlockCopy>{{1, 5}});
      for (int layer = 0; layer < shape.num_layers(); ++layer) {
        const kernels::KvCacheView now = storage.layer(layer), before = untouched.layer(layer);
        const auto values = static_cast<std::size_t>(4 * now.num_kv_heads);
        const auto same = [](const void* a, BlockId at, const void* b, BlockId was, std::size_t bytes) {
          return std::memcmp(static_cast<const std::byte*>(a) + static_cast<std::size_t>(at) * bytes,
                             static_cast<const std::byte*>(b) + static_cast<std::size_t>(was) * bytes, bytes) == 0;
        };
        const auto row = [&](int width) { return values * static_cast<std::size_t>(width * bits(dtype) / 8); };
        CHECK(same(now.k, 5, before.k, 0, row(now.head_dim)));
        CHECK(same(now.v, 5, before.v, 0, row(now.value_stride())));
        if (dtype == Dtype::int8)
          CHECK(same(now.extras.as<kernels::Int8KvScales>().k, 5, before.extras.as<kernels::Int8KvScales>().k, 0,
                     values * sizeof(float)));
      }
    }
}

TEST_CASE("latents and shared K and V: texts depend neither on neighbours, prefix caching nor preemption") {
  const std::vector<TextRequest> requests = text_requests();
  for (const std::string& variant : latent_and_cross_layer()) {
    const ModelWeights weights = latent_text_weights(variant);
    GeneratorOptions plain;
    plain.engine.kv_cache_dtype = Dtype::f32, plain.engine.block_size = 4, plain.num_threads = 2;
    GeneratorOptions cached = plain, swapping = plain, recomputing = plain;
    cached.engine.enable_prefix_caching = true;
    swapping.kv_cache_memory = recomputing.kv_cache_memory = kv_bytes_per_token(weights.shape, Dtype::f32) * 4 * 18;
    swapping.engine.preemption_mode = PreemptionMode::swap;
    swapping.engine.swap_space = 100 * kv_bytes_per_token(weights.shape, Dtype::f32) * 4;
    recomputing.engine.prefill_latents = LatentForm::absorb;  // the form of decode: what is recomputed has its bits
    for (const GeneratorOptions& options : {plain, cached, swapping, recomputing}) {
      GeneratorOptions one_by_one = options;
      one_by_one.kv_cache_memory.reset(), one_by_one.engine.enable_prefix_caching = false;
      Generator alone(kGoldenFolder / "text", weights, one_by_one), generator(kGoldenFolder / "text", weights, options);
      const Generation together = generator.generate(requests);
      CHECK((together.report.num_preemptions > 0) == options.kv_cache_memory.has_value());
      CHECK((together.report.num_cached_tokens > 0) == options.engine.enable_prefix_caching);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        INFO(variant << ", request " << i);
        CHECK(together.completions[i].token_ids == alone.generate({&requests[i], 1}).completions[0].token_ids);
      }
    }
  }
}

TEST_CASE("latents: quantized kv_b_proj is absorbed with the values that are expanded") {
  const GoldenModel golden("deepseek_v2_groups", kFamilyFolder);
  const ModelWeights weights = load_weights(golden.folder());
  for (const int bits : {4, 8}) {
    const QuantizeOptions options = options_of(QuantizationMethod::rtn, bits, 8, QuantizedFormat::gptq);
    REQUIRE(problems(options, weights).empty());
    const QuantizedModel model = quantize_model(weights, {}, options, {});
    const QuantizedFolder written = to_write(model, options, golden.folder());
    REQUIRE(written.modules.contains("model.layers.1.self_attn.kv_b_proj"));
    const TemporaryFolder folder;
    write_quantized_model(written, folder.path("model"));
    const ModelWeights packed = load_weights(folder.path("model"));
    ModelWeights widened = weights;  // the same values in F32
    std::vector<std::vector<float>> kept;
    for (const TensorSlot& slot : tensor_slots(widened)) {
      kept.emplace_back(slot.values());
      const auto module = written.modules.find(slot.name.substr(0, slot.name.rfind('.')));
      if (slot.kind != SlotKind::matrix || module == written.modules.end())
        widen(slot.view->data, slot.view->dtype, kept.back());
      else
        kept.back() = dequantized(*module->second);
      *slot.view = {kept.back().data(), Dtype::f32, slot.rows};
    }
    widened.shape.dtype = Dtype::f32;
    Stepper exact(widened), quantized(packed);
    const std::vector<Logits> expected = read_prompt(exact, golden.prompts()[0]);
    const std::vector<Logits> actual = read_prompt(quantized, golden.prompts()[0]);
    for (std::size_t i = 0; i < actual.size(); ++i)
      CHECK(largest_difference(actual[i], expected[i].data()) <= kTolerance);
  }
}

TEST_CASE("latents: random FP8 weights give both forms the same logits") {
  const ModelWeights weights = long_context_weights(WeightFormat{Dtype::fp8_e4m3, 0});
  REQUIRE(weights.layers[0][WeightSlot::kv_b_proj].weights[0].dtype == Dtype::fp8_e4m3);
  Stepper absorbed(weights, {.prefill_latents = LatentForm::absorb}), expanded(weights);
  const std::vector<Feed> prompt{{0, Phase::prefill, long_prompt()}};
  CHECK(largest_difference(absorbed.step(prompt)[0], expanded.step(prompt)[0].data()) <= kTolerance);
}

TEST_CASE("latents: a step allocates nothing but its result once it has warmed up") {
  Stepper stepper(load_weights(kFamilyFolder / "deepseek_v3"), {.block_size = 64});
  static_cast<void>(stepper.step({{0, Phase::prefill, {5, 6, 7}}, {1, Phase::prefill, {8, 9}}}));
  static_cast<void>(stepper.step({{0, Phase::decode, {3}}, {1, Phase::decode, {4}}}));
  StepPlan plan = stepper.plan({{0, Phase::decode, {5}}, {1, Phase::decode, {6}}});
  std::erase_if(plan.ops, [](const Op& op) { return op.kind == OpKind::attention_decode || op.name == "absorb_v"; });
  const int before = num_allocations();
  static_cast<void>(stepper.executor().run(plan));
  REQUIRE(num_allocations() - before == 1);
}

TEST_CASE("latents and shared K and V: what does not go with them is refused with one message") {
  for (const std::string& variant : latent_and_cross_layer()) {
    INFO(variant);
    const ModelWeights weights = load_weights(kFamilyFolder / variant);
    CHECK_THROWS_WITH(CpuExecutor(weights, {.num_blocks = 4, .dtype = Dtype::kivi4}, 1),
                      ContainsSubstring("it needs K and V in every layer"));
    const QuantizeOptions options = options_of(QuantizationMethod::rtn, 4, 8, QuantizedFormat::gptq);
    const std::vector<TokenId> tokens{3, 4, 5};
    CHECK_THROWS_WITH(quantize_model(weights, tokens, options, {}), ContainsSubstring("without --calibration"));
  }
  CHECK_THROWS_WITH(regrouped(load_weights(kFamilyFolder / "cla"), 1),
                    ContainsSubstring("some layers read the K and V of an earlier one"));
  CHECK_THROWS_WITH(regrouped(load_weights(kFamilyFolder / "deepseek_v2"), 2), ContainsSubstring("cannot be pooled"));
  ModelWeights odd = load_weights(kFamilyFolder / "deepseek_v2");
  for (LayerKind& kind : odd.shape.kinds) std::get<Mla>(kind.attention).v_head_dim = 12;
  CHECK_THROWS_WITH(CpuExecutor(odd, {.num_blocks = 4}, 1), ContainsSubstring("v_head_dim 12 is not supported"));
}

}  // namespace dculab::engine
