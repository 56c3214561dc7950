// A KV cache that the engine refuses is warned of where it is priced: in the same cases, with the same words.
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/kv_calibration.hpp"
#include "engine/executors/gpu_requirements.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/kv/gpu_kv_storage.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

// Every format with every policy that the model goes with.
std::vector<EngineOptions> cached_in_any_way(const ModelShape& model) {
  std::vector<EngineOptions> all;
  for (const KvFormat& format : kKvFormats)
    for (const KvPolicy& policy : kKvPolicies) {
      EngineOptions options;
      options.kv_cache_dtype = format.dtype;
      options.kv_retention = {
          .policy = policy.policy, .window_tokens = 64, .heavy_hitter_tokens = 64, .kv_budget = 0.5};
      if (problems(options).empty() && problems(options, model).empty()) all.push_back(options);
    }
  return all;
}

// The engine has no such KV cache on a GPU.
bool refuses_on_gpu(const ModelShape& model, const EngineOptions& asked) {
  try {
    const engine::OpenDevice device = engine::open_device({engine::DeviceKind::host_gpu, 0});
    const EngineOptions options = engine::options_on(device.choice, asked);
    engine::require_gpu_runnable(model, options.activation_dtype, options.activations);
    const engine::GpuKvStorage storage(device.gpu, model, {.num_blocks = 1, .dtype = options.kv_cache_dtype});
  } catch (const InputError&) {
    return true;
  }
  return false;
}

// The same on a CPU: the reason, or nothing.
std::string refusal_on_cpu(const ModelShape& model, const EngineOptions& options) {
  try {
    const engine::KvStorage storage(
        model, {.num_blocks = 1, .dtype = options.kv_cache_dtype, .calibration = engine::made_up_calibration(model)});
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("heads of a size that a format does not store are warned of in the engine's words") {
  ModelShape model = sim::test::tiny_llama();
  const sim::Machine cpu = resolve_machine("x86-server"), gpu = resolve_machine("z100");
  for (const int head_dim : {32, 80, 100}) {
    model.kinds[0].gqa().heads.head_dim = head_dim;
    int refused = 0;
    for (const EngineOptions& options : cached_in_any_way(model)) {
      CAPTURE(head_dim, name(options.kv_cache_dtype), name(options.kv_retention.policy));
      const std::string reason = refusal_on_cpu(model, options);
      const std::vector<std::string> found = refused_kv(cpu, model, options);
      REQUIRE(found.size() == (reason.empty() ? 0 : 1));
      if (!reason.empty()) CHECK_THAT(found.front(), ContainsSubstring(reason));
      refused += reason.empty() ? 0 : 1;
      if (head_dim != 100) CHECK(unserved(gpu, model, options).empty() == !refuses_on_gpu(model, options));
    }
    CHECK(refused == (head_dim == 32 ? 0 : head_dim == 80 ? 2 : 5));
  }
}

TEST_CASE("what is cached is warned of on a GPU where the engine refuses it there, and nowhere else") {
  ModelShape equal = sim::test::tiny_llama();
  equal.kinds[0].gqa().heads.num_key_value_heads = 2;
  ModelShape groups = equal, layers = equal;
  groups.kinds[0].gqa().group_sizes = {2, 6};
  layers.kinds.push_back(layers.kinds[0]);
  layers.kinds[1].gqa().heads.num_key_value_heads = 4;
  layers.layers[1] = 1;
  const sim::Machine gpu = resolve_machine("z100"), cpu = resolve_machine("x86-server");
  for (const ModelShape& model : {equal, groups, layers}) {
    int refused = 0, ways = 0;
    for (const EngineOptions& options : cached_in_any_way(model)) {
      CAPTURE(name(options.kv_cache_dtype), name(options.kv_retention.policy), model.has_unequal_heads());
      CHECK(unserved(gpu, model, options).empty() == !refuses_on_gpu(model, options));
      CHECK(unserved(cpu, model, options).empty());
      ++ways, refused += refuses_on_gpu(model, options) ? 1 : 0;
    }
    CHECK((model.has_unequal_heads() ? refused == ways : 0 < refused && refused < ways));
  }
}

TEST_CASE("what looks at all heads is warned of where processes have some each, on a CPU and on a GPU") {
  const ModelShape model = sim::test::llama_3_8b(), part = shard(model, {}, 4);
  const sim::Machine cpu = resolve_machine("x86-server"), gpu = resolve_machine("z100");
  for (const EngineOptions& options : cached_in_any_way(model)) {
    const bool refused = !combines(options.kv(), KvFeature::divided);
    CAPTURE(name(options.kv_cache_dtype), name(options.kv_retention.policy));
    CHECK(unserved(cpu, part, options).empty() == !refused);
    CHECK(unserved(gpu, part, options).size() == unserved(gpu, model, options).size() + (refused ? 1 : 0));
  }
  EngineOptions options;
  options.kv_cache_dtype = Dtype::kvquant2;
  CHECK_THAT(
      unserved(cpu, part, options).at(0),
      ContainsSubstring("the engine of dculab refuses it: kv_cache_dtype kvquant2 looks at K and V of all heads"));
}

}  // namespace
}  // namespace dculab::study
