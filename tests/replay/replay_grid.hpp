// A grid of attention kernels, each recorded once and replayed on several machines beside the closed form.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/memory/replay_comparison.hpp"

namespace dculab {

// One kernel to record.
struct ReplayCase {
  Phase phase = Phase::decode;
  int num_heads = 32;
  int kv_heads = 8;
  int head_dim = 128;
  int block_size = 16;
  int context = 512;
  int batch = 4;
  int heads_per_workgroup = 0;  // 0: the whole group
  int partition_tokens = 0;     // decode; 0: a single pass

  [[nodiscard]] std::string text() const;
};

// What became of one case on one machine.
struct ReplayOutcome {
  ReplayCase what;
  std::string machine;
  sim::ReplayComparison comparison;

  [[nodiscard]] double dram_error() const;    // closed form / replayed - 1
  [[nodiscard]] double l2_hit_error() const;  // closed form - replayed, as a share
  [[nodiscard]] bool dram_holds() const;      // within 10 %
  [[nodiscard]] bool l2_hit_holds() const;    // within 5 points
};

// Shares of the outcomes.
struct ReplayScore {
  double dram_within_10_percent = 0;
  double l2_hit_within_5_points = 0;
};

// Calls report(outcome) for every case and machine of a wave size that fits.
void replay_cases(const std::vector<ReplayCase>& cases, const std::vector<sim::Machine>& machines,
                  const std::function<void(const ReplayOutcome&)>& report);

// Precondition: there are some.
[[nodiscard]] ReplayScore score(const std::vector<ReplayOutcome>& outcomes);

// Group size x block size x head size x context x batch, for both ways of sharing KV; `full` is thirty times as many.
enum class GridSize : std::uint8_t { quick, full };
[[nodiscard]] std::vector<ReplayCase> decode_grid(GridSize size);
[[nodiscard]] std::vector<ReplayCase> prefill_grid(GridSize size);

// The shipped GPU machines of the grid.
[[nodiscard]] std::vector<sim::Machine> grid_machines();

}  // namespace dculab
