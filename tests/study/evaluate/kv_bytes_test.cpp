// Bytes of the KV cache that a sequence keeps and a decode loads.
#include "study/evaluate/kv_bytes.hpp"

#include "engine/checkpoint/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "study/scenario/locate.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

const ModelShape& tiny() {
  static const ModelShape model = engine::read_model_shape(find_model("dculab-tiny"));
  return model;
}

EngineOptions options_of(RetentionPolicy policy) {
  EngineOptions options;
  options.block_size = 8;
  options.kv_retention.policy = policy;
  options.kv_retention.kv_budget = 0.25;
  return options;
}

TEST_CASE("critical blocks keep all tokens and the bounds of all blocks, and a decode loads its share of the blocks") {
  const Bytes of_token = kv_bytes_per_token(tiny(), Dtype::f16);
  const EngineOptions all = options_of(RetentionPolicy::all), critical = options_of(RetentionPolicy::critical_blocks);
  CHECK(kv_bytes_per_sequence(tiny(), all, 128) == 128 * of_token);
  CHECK(kv_bytes_loaded(tiny(), all, 128) == 128 * of_token);
  // 16 blocks, the bounds of each of which have the bytes of a token; 4 of them are loaded.
  CHECK(kv_bytes_per_sequence(tiny(), critical, 128) == (128 + 16) * of_token);
  CHECK(kv_bytes_loaded(tiny(), critical, 128) == (4 * 8 + 16) * of_token);
}

TEST_CASE("a window keeps no more than its tokens and a block") {
  EngineOptions window = options_of(RetentionPolicy::window);
  window.kv_retention.window_tokens = 32;
  const Bytes kept = kv_bytes_per_sequence(tiny(), window, 1000);
  CHECK(kept >= 32 * kv_bytes_per_token(tiny(), Dtype::f16));
  CHECK(kept < (32 + 8) * kv_bytes_per_token(tiny(), Dtype::f16));
  CHECK(kv_bytes_per_sequence(tiny(), window, 10) == 10 * kv_bytes_per_token(tiny(), Dtype::f16));
}

TEST_CASE("formats that quantize tokens together keep the newest in F16") {
  EngineOptions kivi = options_of(RetentionPolicy::all);
  kivi.kv_cache_dtype = Dtype::kivi4;
  const Bytes quantized = 320 * kv_bytes_per_token(tiny(), Dtype::kivi4);
  const Bytes f16 = 320 * kv_bytes_per_token(tiny(), Dtype::f16);
  CHECK(kv_bytes_per_sequence(tiny(), kivi, 320) > quantized);
  CHECK(kv_bytes_per_sequence(tiny(), kivi, 320) < f16);
  CHECK(kv_bytes_per_sequence(tiny(), kivi, 16) == 16 * kv_bytes_per_token(tiny(), Dtype::f16));
}

TEST_CASE("a policy without sizes gets those of the bytes that critical blocks load") {
  const auto shared = [](RetentionPolicy policy) {
    EngineOptions options = options_of(policy);
    share_budget(options, tiny(), 128);
    return options.kv_retention;
  };
  CHECK(shared(RetentionPolicy::window).window_tokens == 48);
  CHECK(shared(RetentionPolicy::sinks).window_tokens == 44);  // 4 more are sinks
  CHECK(shared(RetentionPolicy::heavy_hitters).heavy_hitter_tokens == 24);
  CHECK(shared(RetentionPolicy::heavy_hitters).window_tokens == 24);
  CHECK(shared(RetentionPolicy::all).window_tokens == 0);
  EngineOptions given = options_of(RetentionPolicy::window);
  given.kv_retention.window_tokens = 5;
  share_budget(given, tiny(), 128);
  CHECK(given.kv_retention.window_tokens == 5);
}

}  // namespace
}  // namespace dculab::study
