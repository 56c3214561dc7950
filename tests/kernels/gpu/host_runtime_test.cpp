// Does the host build behave as a GPU where kernels rely on it, and more strictly where they may be wrong?
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "kernels/gpu/runtime.hpp"
#include "tests/kernels/gpu/host_options.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels::gpu::host_build {
namespace {

using host::HostOptions;
using host::LaneOrder;

struct Cells {
  int values[256];
};

enum class Barrier { present, forgotten };

// Each lane hands its number to the lane after it, through shared memory.
std::vector<int> pass_on(const HostOptions& options, int threads, Barrier kept) {
  std::vector<int> got(static_cast<std::size_t>(threads));
  host::run_grid({.threads = threads}, options, [&] {
    DCULAB_SHARED(Cells, cells);
    const int i = thread_index();
    cells.values[i] = i;
    if (kept == Barrier::present) barrier();
    got[static_cast<std::size_t>(i)] = cells.values[(i + threads - 1) % threads];
  });
  return got;
}

}  // namespace

TEST_CASE("a forgotten barrier shows: results depend on the order of lanes", "[gpu]") {
  for (const int threads : {1, 37, 64, 200, 256}) {
    for_each_option([&](const HostOptions& options) {
      const auto got = pass_on(options, threads, Barrier::present);
      for (int i = 0; i < threads; ++i) REQUIRE(got[static_cast<std::size_t>(i)] == (i + threads - 1) % threads);
    });
  }
  std::set<std::vector<int>> results;
  for (const LaneOrder order : kLaneOrders) results.insert(pass_on({.order = order}, 256, Barrier::forgotten));
  CHECK(results.size() == 3);
}

TEST_CASE("another seed shuffles the lanes in another way, the same one in the same", "[gpu]") {
  const auto result = [](std::uint64_t seed) {
    return pass_on({.order = LaneOrder::shuffled, .seed = seed}, 256, Barrier::forgotten);
  };
  CHECK(result(1) == result(1));
  CHECK(result(1) != result(2));
}

TEST_CASE("lanes that leave early run once, hold up no others, and shuffles from them give 0", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    std::vector<int> starts(200), ends(200);
    std::vector<std::uint64_t> from_before(200, 7), from_left(200, 7);
    host::run_grid({.threads = 200}, options, [&] {
      const auto i = static_cast<std::size_t>(thread_index());
      ++starts[i];
      const bool leaves = thread_index() % 4 == 1;
      const int neighbour = lane_in_wave(options) ^ 1;  // of a lane that stays: one that leaves, or one that stays
      from_before[i] = host::exchange(i + 1000, neighbour);
      if (leaves) return;
      barrier();
      from_left[i] = host::exchange(i + 1000, neighbour);
      barrier();
      ++ends[i];
    });
    for (std::size_t i = 0; i < 200; ++i) {
      REQUIRE(starts[i] == 1);
      REQUIRE(ends[i] == (i % 4 == 1 ? 0 : 1));
      REQUIRE(from_before[i] == (i ^ 1) + 1000);
      if (i % 4 != 1) REQUIRE(from_left[i] == (i % 4 == 0 ? 0 : (i ^ 1) + 1000));
    }
  });
}

TEST_CASE("whole waves may leave before a barrier, and a workgroup before its first", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    int passed = 0;
    host::run_grid({.threads = 256}, options, [&] {
      DCULAB_SHARED(Cells, cells);
      const int wave = thread_index() / options.wave_size;
      if (wave % 2 == 1) return;
      cells.values[thread_index()] = 1;
      barrier();
      const int opposite = 128 - options.wave_size * (wave == 0 ? 0 : 1);
      if (wave == 0 && cells.values[opposite + lane_in_wave(options)] == 1) ++passed;
      barrier();
    });
    CHECK(passed == options.wave_size);
    host::run_grid({.threads = 256}, options, [] {});
  });
}

TEST_CASE("shared memory that was not written is NaN, in each workgroup anew", "[gpu]") {
  struct Floats {
    float values[64];
  };
  for_each_option([](const HostOptions& options) {
    int finite = 0;
    host::run_grid({.x = 3, .threads = 64}, options, [&] {
      DCULAB_SHARED(Floats, floats);
      if (!std::isnan(floats.values[thread_index()])) ++finite;
      barrier();
      floats.values[thread_index()] = 1;
    });
    CHECK(finite == 0);
    CHECK(host::last_shared_bytes() == sizeof(Floats));
  });
}

namespace {

template <int kStart>
int* own_counter() {
  DCULAB_SHARED(int, counter);
  DCULAB_SHARED(double, unused);  // two of one function
  unused = kStart;
  if (thread_index() == 0) counter = kStart;
  barrier();
  return &counter;
}

}  // namespace

TEST_CASE("shared variables and those of template instances do not share memory", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    std::vector<std::tuple<int, int>> counts;
    host::run_grid({.x = 2, .threads = 70}, options, [&] {
      int* const ten = own_counter<10>();
      int* const twenty = own_counter<20>();
      ++*ten;
      *twenty += 2;
      barrier();
      if (thread_index() == 0) counts.emplace_back(*ten, *twenty);
    });
    CHECK(counts == std::vector{std::tuple(80, 160), std::tuple(80, 160)});
  });
  CHECK_THROWS_AS(host::run_grid({}, {},
                                 [] {
                                   struct TooMuch {
                                     char bytes[1 << 20];
                                   };
                                   DCULAB_SHARED(TooMuch, too_much);
                                   too_much.bytes[0] = 0;
                                 }),
                  std::length_error);
}

TEST_CASE("the lanes of a wave must wait at one place", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    const auto half_shuffles = [] {
      if (thread_index() % 2 == 0)
        barrier();
      else
        (void)host::exchange(1, 0);
    };
    CHECK_THROWS_WITH(host::run_grid({.threads = 64}, options, half_shuffles), ContainsSubstring("different places"));
    int even = 0, odd = 0;  // what follows differs, so that a compiler cannot make the two barriers one
    const auto two_barriers = [&] {
      if (thread_index() % 2 == 0) {
        barrier();
        ++even;
      } else {
        barrier();
        ++odd;
      }
    };
    CHECK_THROWS_AS(host::run_grid({.threads = 64}, options, two_barriers), std::logic_error);
    // Waves may: a barrier counts them, wherever they wait.
    const auto waves_apart = [&] {
      if (thread_index() / options.wave_size == 0) {
        barrier();
        ++even;
      } else {
        barrier();
        ++odd;
      }
    };
    CHECK_NOTHROW(host::run_grid({.threads = 2 * options.wave_size}, options, waves_apart));
    CHECK(even == options.wave_size);
    CHECK(odd == options.wave_size);
  });
}

TEST_CASE("a place in the source is one place, however a compiler rearranges the loops around it", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    std::vector<float> sums(64);
    const auto lane = [&] {
      const bool is_active = thread_index() % 3 != 0;  // does not change in the loop, and is not the same in all lanes
      float sum = 0;
      for (int i = 0; i < 9; ++i) {
        float value = 0;
        if (is_active) value = static_cast<float>(i);
        sum += shuffle_xor<64>(value, 1);
        if (is_active) sum *= 2;
        if (i < thread_index()) sum += 1;
        barrier();
      }
      sums[static_cast<std::size_t>(thread_index())] = sum;
    };
    CHECK_NOTHROW(host::run_grid({.threads = 64}, options, lane));
  });
}

TEST_CASE("an exception of a lane reaches the caller; waiting lanes are unwound, and the next grid runs", "[gpu]") {
  struct Count {
    int& alive;
    explicit Count(int& lanes) : alive(lanes) { ++alive; }
    ~Count() { --alive; }
  };
  for_each_option([](const HostOptions& options) {
    for (const int failing : {0, 5, 99}) {
      int alive = 0;
      const auto fail_after_barrier = [&] {
        const Count count(alive);
        (void)host::exchange(0, 0);
        barrier();
        if (thread_index() == failing) throw std::out_of_range("lane");
        barrier();
      };
      CHECK_THROWS_AS(host::run_grid({.x = 2, .threads = 100}, options, fail_after_barrier), std::out_of_range);
      CHECK(alive == 0);
      CHECK_THROWS_AS(host::run_grid({.threads = 100}, options, [] { throw 5; }), int);
      CHECK(pass_on(options, 100, Barrier::present).front() == 99);
    }
  });
}

TEST_CASE("every lane of every workgroup runs once and knows where it is", "[gpu]") {
  for_each_option([](const HostOptions& options) {
    std::map<std::tuple<int, int, int, int>, int> visits;
    host::run_grid({.x = 3, .y = 2, .z = 4, .threads = 33}, options, [&] {
      REQUIRE(threads_per_workgroup() == 33);
      REQUIRE(workgroups_x() == 3);
      ++visits[{workgroup_x(), workgroup_y(), workgroup_z(), thread_index()}];
      barrier();
      ++visits[{workgroup_x(), workgroup_y(), workgroup_z(), thread_index()}];
    });
    CHECK(visits.size() == 3 * 2 * 4 * 33);
    for (const auto& [place, count] : visits) REQUIRE(count == 2);
    CHECK(std::get<0>(visits.rbegin()->first) == 2);
    CHECK(std::get<2>(visits.rbegin()->first) == 3);
  });
}

TEST_CASE("grids run on several threads at once", "[gpu]") {
  std::vector<std::vector<int>> results(3);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = pass_on({}, 200, Barrier::present); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) {
    REQUIRE(result.size() == 200);
    for (int i = 0; i < 200; ++i) REQUIRE(result[static_cast<std::size_t>(i)] == (i + 199) % 200);
  }
}

}  // namespace dculab::kernels::gpu::host_build
