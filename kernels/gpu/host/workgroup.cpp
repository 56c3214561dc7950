#include "kernels/gpu/host/workgroup.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/gpu/host/fibre.hpp"

namespace dculab::kernels::gpu::host {
namespace {

constexpr int kMaxWave = 64;

enum class LaneState : std::uint8_t { ready, at_barrier, at_exchange, left };

struct Lane {
  LaneIndex index;
  int wave = 0;
  int in_wave = 0;
  LaneState state = LaneState::ready;
  const void* site = nullptr;  // where it waits
  std::unique_ptr<Fibre> fibre;
};

struct Wave {
  int first = 0, size = 0;  // lanes
  // Values handed over; two sets, because a lane can be at the next exchange before the others have read this one.
  std::array<std::array<std::uint64_t, kMaxWave>, 2> handed{};
  unsigned turn = 0;
};

struct SharedVariable {
  const void* tag = nullptr;
  std::size_t offset = 0;
};

// The workgroup that this thread runs.
class Workgroup {
 public:
  Workgroup(const Grid& grid, const HostOptions& options, const std::function<void()>& body);

  void run(int x, int y, int z);
  [[nodiscard]] std::size_t shared_bytes() const { return most_shared_; }

  // Called inside a lane.
  [[nodiscard]] const Lane& lane() const { return lanes_[static_cast<std::size_t>(current_)]; }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  void wait(LaneState state, const void* site);
  [[nodiscard]] std::uint64_t* hand_over(std::uint64_t bits, const void* site);
  [[nodiscard]] void* shared_variable(const void* tag, std::size_t bytes, std::size_t alignment);
  void note_access(const void* site, const void* address, std::uint32_t bytes, AccessKind kind);

 private:
  [[nodiscard]] std::span<Lane> lanes_of(const Wave& wave) {
    return std::span(lanes_).subspan(static_cast<std::size_t>(wave.first), static_cast<std::size_t>(wave.size));
  }
  void run_until_barrier(int wave);
  void resume_ready_lanes(int wave);
  void end_epoch(int wave);
  [[nodiscard]] std::vector<int> turns(int count);

  Grid grid_;
  HostOptions options_;
  std::vector<Lane> lanes_;
  std::vector<Wave> waves_;
  int current_ = 0;
  int workgroup_ = 0;
  std::mt19937_64 random_;
  std::exception_ptr failure_;
  std::vector<std::byte> shared_;
  std::vector<SharedVariable> shared_variables_;
  std::size_t shared_used_ = 0, most_shared_ = 0;
};

constexpr std::size_t kSharedCapacity = 256 * 1024;  // more than any GPU gives a workgroup

thread_local Workgroup* running = nullptr;
thread_local std::size_t shared_bytes_of_last_grid = 0;

Workgroup::Workgroup(const Grid& grid, const HostOptions& options, const std::function<void()>& body)
    : grid_(grid),
      options_(options),
      lanes_(static_cast<std::size_t>(grid.threads)),
      random_(options.seed),
      shared_(kSharedCapacity) {
  const int size = options.wave_size;
  for (int first = 0; first < grid.threads; first += size) {
    waves_.emplace_back();
    waves_.back().first = first;
    waves_.back().size = std::min(size, grid.threads - first);
  }
  for (int i = 0; i < grid.threads; ++i) {
    Lane& lane = lanes_[static_cast<std::size_t>(i)];
    lane.index.thread = i;
    lane.wave = i / size;
    lane.in_wave = i % size;
    lane.fibre = std::make_unique<Fibre>([this, &lane, &body] {
      try {
        body();
      } catch (const std::exception&) {  // not the unwinding of a fibre that is destroyed
        if (!failure_) failure_ = std::current_exception();
      }
      lane.state = LaneState::left;
    });
  }
}

std::vector<int> Workgroup::turns(int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (options_.order == LaneOrder::reversed) std::reverse(order.begin(), order.end());
  if (options_.order == LaneOrder::shuffled) std::shuffle(order.begin(), order.end(), random_);
  return order;
}

void Workgroup::run(int x, int y, int z) {
  workgroup_ = (z * grid_.y + y) * grid_.x + x;
  std::memset(shared_.data(), 0xFF, std::max(most_shared_, shared_used_));
  shared_variables_.clear();
  shared_used_ = 0;
  for (Lane& lane : lanes_) {
    lane.index = {lane.index.thread, x, y, z};
    lane.state = LaneState::ready;
  }
  const auto all_left = [&] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.state == LaneState::left; });
  };
  while (!all_left()) {
    for (const int wave : turns(static_cast<int>(waves_.size()))) run_until_barrier(wave);
    for (Lane& lane : lanes_)
      if (lane.state == LaneState::at_barrier) lane.state = LaneState::ready;
  }
  most_shared_ = std::max(most_shared_, shared_used_);
}

void Workgroup::resume_ready_lanes(int wave) {
  const Wave& resumed = waves_[static_cast<std::size_t>(wave)];
  for (const int turn : turns(resumed.size)) {
    current_ = resumed.first + turn;
    Lane& lane = lanes_[static_cast<std::size_t>(current_)];
    if (lane.state != LaneState::ready) continue;
    lane.fibre->resume();
    if (failure_) std::rethrow_exception(failure_);
  }
}

// Lets the lanes of a wave run until those that have not left wait at a barrier.
void Workgroup::run_until_barrier(int wave) {
  Wave& resumed = waves_[static_cast<std::size_t>(wave)];
  for (;;) {
    resume_ready_lanes(wave);
    end_epoch(wave);
    const Lane* first = nullptr;
    for (const Lane& lane : lanes_of(resumed)) {
      if (lane.state == LaneState::left) continue;
      if (first == nullptr) first = &lane;
      if (lane.state != first->state || lane.site != first->site)
        throw std::logic_error("lanes " + std::to_string(first->in_wave) + " and " + std::to_string(lane.in_wave) +
                               " of a wave wait at different places");
    }
    if (first == nullptr || first->state == LaneState::at_barrier) return;
    ++resumed.turn;
    // What the next exchange finds from lanes that have left.
    resumed.handed[(resumed.turn + 1) % 2].fill(0);
    for (Lane& lane : lanes_of(resumed))
      if (lane.state == LaneState::at_exchange) lane.state = LaneState::ready;
  }
}

void Workgroup::end_epoch(int wave) {
  if (options_.recorder != nullptr) options_.recorder->end_epoch(workgroup_ * static_cast<int>(waves_.size()) + wave);
}

void Workgroup::wait(LaneState state, const void* site) {
  Lane& lane = lanes_[static_cast<std::size_t>(current_)];
  lane.state = state;
  lane.site = site;
  lane.fibre->leave();
}

// Returns what the lanes of the wave have handed over.
std::uint64_t* Workgroup::hand_over(std::uint64_t bits, const void* site) {
  const Lane& own = lane();
  Wave& wave = waves_[static_cast<std::size_t>(own.wave)];
  auto& handed = wave.handed[(wave.turn + 1) % 2];
  handed[static_cast<std::size_t>(own.in_wave)] = bits;
  wait(LaneState::at_exchange, site);
  return handed.data();
}

void* Workgroup::shared_variable(const void* tag, std::size_t bytes, std::size_t alignment) {
  for (const SharedVariable& known : shared_variables_)
    if (known.tag == tag) return shared_.data() + known.offset;
  const std::size_t offset = (shared_used_ + alignment - 1) / alignment * alignment;
  if (offset + bytes > kSharedCapacity) throw std::length_error("kernel asks for too much shared memory");
  std::memset(shared_.data() + shared_used_, 0xFF, offset + bytes - shared_used_);
  shared_used_ = offset + bytes;
  shared_variables_.push_back({tag, offset});
  return shared_.data() + offset;
}

void Workgroup::note_access(const void* site, const void* address, std::uint32_t bytes, AccessKind kind) {
  if (options_.recorder == nullptr) return;
  const Lane& own = lane();
  options_.recorder->record(workgroup_ * static_cast<int>(waves_.size()) + own.wave, own.in_wave, site, address, bytes,
                            kind);
}

}  // namespace

void run_grid(const Grid& grid, const HostOptions& options, const std::function<void()>& lane) {
  Workgroup workgroup(grid, options, lane);
  const int waves = (grid.threads + options.wave_size - 1) / options.wave_size;
  if (options.recorder != nullptr) options.recorder->begin_launch(grid.workgroups(), waves, options.wave_size);
  struct Running {
    explicit Running(Workgroup* now) { running = now; }
    ~Running() { running = nullptr; }
  } const while_running(&workgroup);
  for (int z = 0; z < grid.z; ++z)
    for (int y = 0; y < grid.y; ++y)
      for (int x = 0; x < grid.x; ++x) workgroup.run(x, y, z);
  if (options.recorder != nullptr) options.recorder->end_launch();
  shared_bytes_of_last_grid = workgroup.shared_bytes();
}

const LaneIndex& lane_index() { return running->lane().index; }

const Grid& current_grid() { return running->grid(); }

[[gnu::noinline]] void wait_for_workgroup() { running->wait(LaneState::at_barrier, __builtin_return_address(0)); }

[[gnu::noinline]] std::uint64_t exchange(std::uint64_t bits, int source) {
  const std::uint64_t* handed = running->hand_over(bits, __builtin_return_address(0));
  return source >= 0 && source < kMaxWave ? handed[source] : 0;
}

[[gnu::noinline]] std::uint64_t ballot(bool vote) {
  const std::uint64_t* handed = running->hand_over(vote ? 1 : 0, __builtin_return_address(0));
  std::uint64_t votes = 0;
  for (int i = 0; i < kMaxWave; ++i) votes |= (handed[i] & 1U) << i;
  return votes;
}

void* shared_variable(const void* tag, std::size_t bytes, std::size_t alignment) {
  return running->shared_variable(tag, bytes, alignment);
}

std::size_t last_shared_bytes() { return shared_bytes_of_last_grid; }

[[gnu::noinline]] void note_access(const void* address, std::uint32_t bytes, AccessKind kind) {
  running->note_access(__builtin_return_address(0), address, bytes, kind);
}

}  // namespace dculab::kernels::gpu::host
