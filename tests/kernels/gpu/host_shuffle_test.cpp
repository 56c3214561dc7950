// Do the lanes of a wave exchange values on the host build as on a GPU?
#include <algorithm>
#include <vector>

#include "kernels/gpu/runtime.hpp"
#include "tests/kernels/gpu/host_options.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels::gpu::host_build {

using host::HostOptions;
using host::LaneOrder;

TEST_CASE("a wave is 64 or 32 lanes, the last one what is left", "[gpu]") {
  for (const int threads : {1, 31, 32, 33, 63, 64, 65, 100, 256}) {
    for_each_option([&](const HostOptions& options) {
      std::vector<std::uint64_t> votes(static_cast<std::size_t>(threads));
      host::run_grid({.threads = threads}, options,
                     [&] { votes[static_cast<std::size_t>(thread_index())] = host::ballot(true); });
      for (int i = 0; i < threads; ++i) {
        const int lanes = std::min(options.wave_size, threads - i / options.wave_size * options.wave_size);
        REQUIRE(votes[static_cast<std::size_t>(i)] == (lanes == 64 ? ~0ULL : (1ULL << lanes) - 1));
      }
    });
  }
}

TEST_CASE("ballot gathers the votes of the own wave alone", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    std::vector<std::uint64_t> votes(128);
    host::run_grid({.threads = 128}, options, [&] {
      const int wave = thread_index() / options.wave_size;
      votes[static_cast<std::size_t>(thread_index())] = host::ballot(lane_in_wave(options) % (wave + 2) == 0);
    });
    for (int i = 0; i < 128; ++i) {
      std::uint64_t expected = 0;
      for (int lane = 0; lane < options.wave_size; ++lane)
        if (lane % (i / options.wave_size + 2) == 0) expected |= 1ULL << lane;
      REQUIRE(votes[static_cast<std::size_t>(i)] == expected);
    }
  });
}

TEMPLATE_TEST_CASE_SIG("a shuffle stays within its group of lanes, in every part of the wave", "[gpu]",
                       ((int kWave, int kWidth), kWave, kWidth), (64, 64), (64, 32), (64, 16), (64, 8), (64, 4),
                       (64, 1), (32, 32), (32, 16), (32, 8), (32, 4)) {
  for (const LaneOrder order : kLaneOrders) {
    std::vector<int> read(128), exchanged(128);
    host::run_grid({.threads = 128}, {.wave_size = kWave, .order = order}, [&] {
      const auto i = static_cast<std::size_t>(thread_index());
      read[i] = shuffle<kWave, kWidth>(thread_index(), 3);
      exchanged[i] = shuffle_xor<kWave>(thread_index(), kWidth / 2);
    });
    for (int i = 0; i < 128; ++i) {
      REQUIRE(read[static_cast<std::size_t>(i)] == i / kWidth * kWidth + 3 % kWidth);
      REQUIRE(exchanged[static_cast<std::size_t>(i)] == (i ^ kWidth / 2));
    }
  }
}

TEST_CASE("a shuffle may be followed by another before all lanes have read the first", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    std::vector<std::uint64_t> sums(64);
    host::run_grid({.threads = 64}, options, [&] {
      const auto own = static_cast<std::uint64_t>(thread_index());
      const int next = (lane_in_wave(options) + 1) % options.wave_size;
      std::uint64_t sum = 0;
      for (std::uint64_t round = 0; round < 5; ++round) sum = sum * 100 + host::exchange(own + round, next);
      sums[own] = sum;
    });
    for (std::size_t i = 0; i < 64; ++i) {
      const auto size = static_cast<std::size_t>(options.wave_size);
      const std::uint64_t next = i / size * size + (i + 1) % size;
      std::uint64_t expected = 0;
      for (std::uint64_t round = 0; round < 5; ++round) expected = expected * 100 + next + round;
      REQUIRE(sums[i] == expected);
    }
  });
}

}  // namespace dculab::kernels::gpu::host_build
