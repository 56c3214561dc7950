// How many KV blocks fit is counted twice: by the engine before it opens a model, and by the simulator. That what
// policies keep takes what both count is held in tests/engine.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/kv/table.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/generate/open_model.hpp"
#include "sim/memory/capacity.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

struct Room {
  lower::DeviceKind kind;
  engine::OpenDevice here;
  sim::Machine machine;
};

std::vector<Room> rooms() {
  return {{lower::DeviceKind::cpu, {}, sim::test::cpu_like()},
          {lower::DeviceKind::gpu, engine::open_device({.kind = engine::DeviceKind::host_gpu, .index = 0}),
           sim::test::mi50_like()}};
}

EngineOptions plain() {
  EngineOptions options;
  options.max_num_seqs = 32;
  options.gpu_memory_utilization = 1;
  return options;
}

// All that go with one another, and with the device.
std::vector<EngineOptions> choices(lower::DeviceKind kind) {
  std::vector<EngineOptions> all;
  for (const KvPolicy& policy : kKvPolicies)
    for (const KvFormat& format : kKvFormats) {
      EngineOptions options = plain();
      options.kv_cache_dtype = format.dtype;
      options.kv_retention = {.policy = policy.policy,
                              .sink_tokens = 16,
                              .window_tokens = 4096,
                              .heavy_hitter_tokens = 2048,
                              .kv_budget = 0.25};
      const bool is_served = kind == lower::DeviceKind::cpu || combines(options.kv(), KvFeature::gpu);
      if (is_served && combines(options.kv(), KvFeature::each_other)) all.push_back(options);
    }
  return all;
}

}  // namespace

TEST_CASE("the engine has as many KV blocks as the simulator counts, in every format and policy") {
  const ModelShape model = sim::test::llama_3_8b();
  for (Room& room : rooms()) {
    // Room for 2 GiB of K and V without any policy. The two count activations each in its own way.
    sim::Machine& machine = room.machine;
    machine.memory.back().size = Bytes(256.0 * (1 << 30));
    const Bytes others = machine.dram().size - sim::capacity(machine, model, plain(), 1).kv_budget;
    const Bytes kv(2.0 * (1 << 30));
    machine.memory.back().size = others + kv;
    const Bytes free = engine::memory_besides_kv(room.here, model, plain()) + kv;
    std::size_t fewer = 0;
    const std::vector<EngineOptions> all = choices(room.kind);
    for (const EngineOptions& options : all) {
      INFO(name(options.kv_retention.policy) << ", KV in " << name(options.kv_cache_dtype));
      const std::int64_t counted = sim::capacity(machine, model, options, 1).num_blocks;
      const Bytes left = free - engine::memory_besides_kv(room.here, model, options);
      CHECK(engine::choose_num_blocks(model, options, std::nullopt, left, Bytes()) == counted);
      EngineOptions without = options;
      without.kv_retention = {};
      fewer += counted < sim::capacity(machine, model, without, 1).num_blocks ? 1 : 0;
    }
    // Sinks, heavy hitters and critical blocks keep something in each format that they go with; a window does not.
    const auto keeps = [](const EngineOptions& options) {
      return options.kv_retention.policy != RetentionPolicy::all &&
             options.kv_retention.policy != RetentionPolicy::window;
    };
    CHECK(fewer == static_cast<std::size_t>(std::ranges::count_if(all, keeps)));
  }
}

}  // namespace dculab::study
