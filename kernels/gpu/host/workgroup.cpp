#include "kernels/gpu/host/workgroup.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/gpu/host/lanes.hpp"

namespace dculab::kernels::gpu::host {
namespace {

constexpr int kMaxWave = 64;

enum class Meeting : std::uint8_t { none, barrier, exchange };

struct Wave {
  int first = 0, size = 0;  // lanes
  // Where its lanes wait, and the first of them to do so.
  Meeting meeting = Meeting::none;
  const void* site = nullptr;
  int first_waiting = 0;
  // Values handed over; two sets, because a lane can be at the next exchange before the others have read this one.
  std::array<std::array<std::uint64_t, kMaxWave>, 2> handed{};
  unsigned exchanges = 0;
};

struct SharedVariable {
  const void* tag = nullptr;
  std::size_t offset = 0;
};

constexpr std::size_t kSharedCapacity = 256 * 1024;  // more than any GPU gives a workgroup

struct alignas(128) SharedMemory {
  std::byte bytes[kSharedCapacity];
};

// The workgroup that this thread runs.
class Workgroup {
 public:
  Workgroup(const Grid& grid, const HostOptions& options, const std::function<void()>& body);

  void run(int x, int y, int z);
  [[nodiscard]] std::size_t shared_bytes() const { return most_shared_; }

  // Called inside a lane.
  [[gnu::always_inline]] void wait(Meeting meeting, const void* site);
  [[nodiscard, gnu::always_inline]] const std::uint64_t* hand_over(std::uint64_t bits, const void* site);
  [[nodiscard]] void* shared_variable(const void* tag, std::size_t bytes, std::size_t alignment);
  void record_access(const void* site, const void* address, std::uint32_t bytes, AccessKind kind);

 private:
  [[nodiscard]] bool run_until_barrier(Wave& wave);
  [[nodiscard]] int wave_of_launch(int wave) const { return workgroup_ * static_cast<int>(waves_.size()) + wave; }
  [[noreturn]] void refuse_to_wait() const;
  const std::vector<int>& put_in_order(std::vector<int>& turns, int first, int count);

  Grid grid_;
  HostOptions options_;
  std::vector<Wave> waves_;
  Wave* wave_ = nullptr;  // that runs
  std::vector<int> wave_turns_, lane_turns_;
  int workgroup_ = 0;
  std::mt19937_64 random_;
  std::unique_ptr<SharedMemory> shared_;
  std::vector<SharedVariable> shared_variables_;
  std::size_t shared_used_ = 0, most_shared_ = 0;
  Lanes lanes_;  // destroyed first: lanes that are given up unwind
};

thread_local Workgroup* workgroup_of_thread = nullptr;
thread_local std::size_t shared_bytes_of_last_grid = 0;

Workgroup::Workgroup(const Grid& grid, const HostOptions& options, const std::function<void()>& body)
    : grid_(grid),
      options_(options),
      random_(options.seed),
      shared_(new SharedMemory),
      lanes_(grid.threads, options.wave_size, body) {
  for (int first = 0; first < grid.threads; first += options.wave_size) {
    waves_.emplace_back();
    waves_.back().first = first;
    waves_.back().size = std::min(options.wave_size, grid.threads - first);
  }
}

// The numbers from `first` on, in the order in which they get their turns.
const std::vector<int>& Workgroup::put_in_order(std::vector<int>& turns, int first, int count) {
  turns.resize(static_cast<std::size_t>(count));
  std::iota(turns.begin(), turns.end(), first);
  if (options_.order == LaneOrder::reversed) std::reverse(turns.begin(), turns.end());
  if (options_.order == LaneOrder::shuffled) std::shuffle(turns.begin(), turns.end(), random_);
  return turns;
}

void Workgroup::run(int x, int y, int z) {
  workgroup_ = (z * grid_.y + y) * grid_.x + x;
  shared_variables_.clear();
  shared_used_ = 0;
  lanes_.start_workgroup(x, y, z);
  for (bool some_wait = true; some_wait;) {
    some_wait = false;
    for (const int wave : put_in_order(wave_turns_, 0, static_cast<int>(waves_.size())))
      if (run_until_barrier(waves_[static_cast<std::size_t>(wave)])) some_wait = true;
  }
  most_shared_ = std::max(most_shared_, shared_used_);
}

// Lets the lanes of a wave run until those that have not left wait at a barrier; false when all have left.
bool Workgroup::run_until_barrier(Wave& wave) {
  wave_ = &wave;
  do {
    wave.meeting = Meeting::none;
    lanes_.take_turns(put_in_order(lane_turns_, wave.first, wave.size));
    if (options_.recorder != nullptr) options_.recorder->end_epoch(wave_of_launch(wave.first / options_.wave_size));
    ++wave.exchanges;
    // What the next exchange finds from lanes that have left.
    wave.handed[(wave.exchanges + 1) % 2].fill(0);
  } while (wave.meeting == Meeting::exchange);
  return wave.meeting == Meeting::barrier;
}

inline void Workgroup::wait(Meeting meeting, const void* site) {
  if (wave_->meeting == Meeting::none) {
    wave_->meeting = meeting;
    wave_->site = site;
    wave_->first_waiting = lanes_.current().in_wave;
  } else if (wave_->meeting != meeting || wave_->site != site) {
    refuse_to_wait();
  }
  lanes_.end_turn();
}

void Workgroup::refuse_to_wait() const {
  throw std::logic_error("lanes " + std::to_string(wave_->first_waiting) + " and " +
                         std::to_string(lanes_.current().in_wave) + " of a wave wait at different places");
}

// Returns what the lanes of the wave have handed over.
inline const std::uint64_t* Workgroup::hand_over(std::uint64_t bits, const void* site) {
  auto& handed = wave_->handed[(wave_->exchanges + 1) % 2];
  handed[static_cast<std::size_t>(lanes_.current().in_wave)] = bits;
  wait(Meeting::exchange, site);
  return handed.data();
}

void* Workgroup::shared_variable(const void* tag, std::size_t bytes, std::size_t alignment) {
  for (const SharedVariable& known : shared_variables_)
    if (known.tag == tag) return shared_->bytes + known.offset;
  const std::size_t offset = (shared_used_ + alignment - 1) / alignment * alignment;
  if (offset + bytes > kSharedCapacity) throw std::length_error("kernel asks for too much shared memory");
  std::memset(shared_->bytes + offset, 0xFF, bytes);
  shared_used_ = offset + bytes;
  shared_variables_.push_back({tag, offset});
  return shared_->bytes + offset;
}

void Workgroup::record_access(const void* site, const void* address, std::uint32_t bytes, AccessKind kind) {
  const Lane& lane = lanes_.current();
  options_.recorder->record(wave_of_launch(lane.wave), lane.in_wave, site, address, bytes, kind);
}

// When a grid ends, also because a lane throws, the thread no longer runs a workgroup.
struct EndOfGrid {
  EndOfGrid() = default;
  EndOfGrid(const EndOfGrid&) = delete;
  EndOfGrid& operator=(const EndOfGrid&) = delete;
  ~EndOfGrid() {
    workgroup_of_thread = nullptr;
    running = {};
  }
};

}  // namespace

void run_grid(const Grid& grid, const HostOptions& options, const std::function<void()>& lane) {
  const EndOfGrid end;  // after the workgroup: lanes that are given up unwind in it
  Workgroup workgroup(grid, options, lane);
  const int waves = (grid.threads + options.wave_size - 1) / options.wave_size;
  if (options.recorder != nullptr) options.recorder->begin_launch(grid.workgroups(), waves, options.wave_size);
  workgroup_of_thread = &workgroup;
  running.grid = &grid;
  running.is_recorded = options.recorder != nullptr;
  running.has_matrix_cores = options.matrix_cores == HostMatrixCores::present && options.wave_size == kMaxWave;
  for (int z = 0; z < grid.z; ++z)
    for (int y = 0; y < grid.y; ++y)
      for (int x = 0; x < grid.x; ++x) workgroup.run(x, y, z);
  if (options.recorder != nullptr) options.recorder->end_launch();
  shared_bytes_of_last_grid = workgroup.shared_bytes();
}

[[gnu::noinline]] void wait_for_workgroup() {
  workgroup_of_thread->wait(Meeting::barrier, __builtin_return_address(0));
}

[[gnu::noinline]] std::uint64_t exchange(std::uint64_t bits, int source) {
  const std::uint64_t* handed = workgroup_of_thread->hand_over(bits, __builtin_return_address(0));
  return source >= 0 && source < kMaxWave ? handed[source] : 0;
}

[[gnu::noinline]] void exchange_all(std::uint64_t bits, std::uint64_t* all) {
  const std::uint64_t* handed = workgroup_of_thread->hand_over(bits, __builtin_return_address(0));
  std::copy_n(handed, kMaxWave, all);
}

[[gnu::noinline]] std::uint64_t ballot(bool vote) {
  const std::uint64_t* handed = workgroup_of_thread->hand_over(vote ? 1 : 0, __builtin_return_address(0));
  std::uint64_t votes = 0;
  for (int i = 0; i < kMaxWave; ++i) votes |= (handed[i] & 1U) << i;
  return votes;
}

void* shared_variable(const void* tag, std::size_t bytes, std::size_t alignment) {
  return workgroup_of_thread->shared_variable(tag, bytes, alignment);
}

std::size_t last_shared_bytes() { return shared_bytes_of_last_grid; }

[[gnu::noinline]] void record_access(const void* address, std::uint32_t bytes, AccessKind kind) {
  workgroup_of_thread->record_access(__builtin_return_address(0), address, bytes, kind);
}

}  // namespace dculab::kernels::gpu::host
