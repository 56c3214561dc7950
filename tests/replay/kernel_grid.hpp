// A grid of the kernels that are not attention: products, norms, caching, embedding and activations, each recorded once
// and replayed on several machines beside the closed form.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/engine_options.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/replay_comparison.hpp"
#include "tests/replay/replay_grid.hpp"

namespace dculab {

// One kernel to record.
struct KernelCase {
  std::string op;
  ModelShape model;
  EngineOptions options;
  Phase phase = Phase::decode;
  int batch = 1;
  int context = 40;

  [[nodiscard]] std::string text() const;
};

struct KernelOutcome {
  KernelCase what;
  std::string machine;
  sim::ReplayComparison comparison;

  [[nodiscard]] bool dram_holds() const;    // within 10 %
  [[nodiscard]] bool l2_holds() const;      // within 10 %
  [[nodiscard]] bool l2_hit_holds() const;  // within 5 points
  [[nodiscard]] std::string text() const;
};

// Calls report(outcome) for every case and machine of a wave size that fits.
void replay_kernels(const std::vector<KernelCase>& cases, const std::vector<sim::Machine>& machines,
                    const std::function<void(const KernelOutcome&)>& report);

// Of the grid's machines, those whose caches differ: 64 lanes with lines of 64 bytes, or 128 in the L2, and 32 lanes.
[[nodiscard]] std::vector<sim::Machine> kernel_machines();

// Op x model x weights x rows; `full` is several times as many.
[[nodiscard]] std::vector<KernelCase> kernel_grid(GridSize size);

}  // namespace dculab
