#include "engine/exchange/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

// Looks before a rank goes to sleep: some 100 us, longer than what ranks that do the same work lie apart.
constexpr int kSpinsOfRank = 4000;
constexpr int kSpinsPerLook = 64;  // at whether the work has failed

void relax_rank() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

[[nodiscard]] std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[nodiscard]] std::size_t sum_of(std::span<const std::size_t> sizes) {
  std::size_t sum = 0;
  for (const std::size_t size : sizes) sum += size;
  return sum;
}

}  // namespace

Communicator::Communicator(RankGroup& group, int rank, std::function<void()> watch)
    : group_(group), rank_(rank), watch_(std::move(watch)) {}

void Communicator::require_no_failure() const {
  const FailureKind kind = group_.failure();
  if (kind == FailureKind::none) return;
  if (kind == FailureKind::input) throw InputError(group_.failure_message());
  throw std::runtime_error(group_.failure_message());
}

// A rank can be one meeting ahead and no further: it cannot leave the next one without us.
void Communicator::await(int rank) {
  RankGroup::Rank& other = group_.rank(rank);
  const auto has_come = [&] {
    return static_cast<std::int32_t>(other.arrivals.load(std::memory_order_acquire) - meetings_) >= 0;
  };
  for (int spin = 0; spin < kSpinsOfRank; ++spin) {
    if (has_come()) return;
    if (spin % kSpinsPerLook == kSpinsPerLook - 1) require_no_failure();
    relax_rank();
  }
  while (!has_come()) {
    require_no_failure();
    if (watch_) watch_();
    // In this order on both sides: whoever comes looks for sleepers after it has come.
    other.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = other.arrivals.load(std::memory_order_seq_cst);
    if (static_cast<std::int32_t>(seen - meetings_) < 0) sleep_while(other.arrivals, seen);
    other.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Communicator::meet(Timing timing) {
  require_no_failure();
  RankGroup::Rank& own = group_.rank(rank_);
  ++meetings_;
  const std::size_t parity = meetings_ % 2;
  const std::int64_t arrived = timing == Timing::on ? now_ns() : 0;
  if (timing == Timing::on) own.arrived_at[parity].store(arrived, std::memory_order_relaxed);
  own.arrivals.store(meetings_, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) > 0) wake_all(own.arrivals);
  std::int64_t last = arrived;
  for (int other = 0; other < ranks(); ++other) {
    if (other == rank_) continue;
    await(other);
    if (timing == Timing::on)
      last = std::max(last, group_.rank(other).arrived_at[parity].load(std::memory_order_relaxed));
  }
  if (timing == Timing::on) waited_ += Seconds(1e-9 * static_cast<double>(last - arrived));
}

void Communicator::meet() { meet(Timing::off); }

// Once all have met, all have read what lay in the other slot: it may be written.
void Communicator::stream(std::span<const std::byte> own, std::span<const std::size_t> sizes, const Read& read) {
  const std::size_t longest = *std::ranges::max_element(sizes);
  for (std::size_t offset = 0; offset < longest; offset += kSlotBytes) {
    if (offset < own.size()) std::memcpy(own_slot(), own.data() + offset, std::min(kSlotBytes, own.size() - offset));
    meet(offset == 0 ? Timing::on : Timing::off);
    for (int other = 0; other < ranks(); ++other) {
      const std::size_t size = sizes[static_cast<std::size_t>(other)];
      if (other != rank_ && offset < size)
        read(other, offset, {group_.slot(which_, other), std::min(kSlotBytes, size - offset)});
    }
    which_ = 1 - which_;
  }
}

void Communicator::all_reduce(std::span<float> values) {
  constexpr std::size_t kMost = kSlotBytes / sizeof(float);
  for (std::size_t offset = 0; offset < values.size(); offset += kMost) {
    const std::span<float> piece = values.subspan(offset, std::min(kMost, values.size() - offset));
    std::memcpy(own_slot(), piece.data(), piece.size_bytes());
    meet(offset == 0 ? Timing::on : Timing::off);
    const auto values_of = [&](int rank) { return reinterpret_cast<const float*>(group_.slot(which_, rank)); };
    const float *first = values_of(0), *second = values_of(1 % ranks());
    if (ranks() > 1)
      for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = first[i] + second[i];
    for (int other = 2; other < ranks(); ++other) {
      const float* const more = values_of(other);
      for (std::size_t i = 0; i < piece.size(); ++i) piece[i] += more[i];
    }
    which_ = 1 - which_;
  }
}

void Communicator::all_gather(std::span<const std::byte> own, std::span<const std::size_t> sizes, std::byte* all) {
  std::vector<std::byte*> parts;
  for (const std::size_t size : sizes) {
    parts.push_back(all);
    all += size;
  }
  std::byte* const mine = parts[static_cast<std::size_t>(rank_)];
  if (mine != own.data() && !own.empty()) std::memcpy(mine, own.data(), own.size());
  stream(own, sizes, [&](int rank, std::size_t offset, std::span<const std::byte> piece) {
    std::memcpy(parts[static_cast<std::size_t>(rank)] + offset, piece.data(), piece.size());
  });
}

void Communicator::all_gather_columns(std::span<const float> own, std::size_t width, std::size_t columns, float* all) {
  const auto place = [&](int rank, std::size_t offset, std::span<const float> values) {
    const std::size_t first = static_cast<std::size_t>(rank) * width;
    const std::size_t kept = std::min(width, columns - std::min(columns, first));
    for (std::size_t done = 0; done < values.size();) {
      const std::size_t row = (offset + done) / width, column = (offset + done) % width;
      const std::size_t run = std::min(values.size() - done, width - column);
      if (column < kept)
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(done), std::min(run, kept - column),
                    all + row * columns + first + column);
      done += run;
    }
  };
  place(rank_, 0, own);
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks()), own.size_bytes());
  stream(std::as_bytes(own), sizes, [&](int rank, std::size_t offset, std::span<const std::byte> piece) {
    place(rank, offset / sizeof(float), {reinterpret_cast<const float*>(piece.data()), piece.size() / sizeof(float)});
  });
}

void Communicator::all_to_all(std::span<const std::byte> own, std::span<const std::size_t> sizes, std::byte* received) {
  const auto all = static_cast<std::size_t>(ranks()), self = static_cast<std::size_t>(rank_);
  std::vector<std::size_t> totals(all), begins(all);  // of what each rank has, and where that for this rank begins
  std::vector<std::byte*> parts(all);                 // where that goes
  for (std::size_t rank = 0; rank < all; ++rank) {
    const std::span<const std::size_t> row = sizes.subspan(rank * all, all);
    totals[rank] = sum_of(row);
    begins[rank] = sum_of(row.first(self));
    parts[rank] = received;
    received += row[self];
  }
  const std::size_t kept = sizes[self * all + self];
  if (kept > 0) std::memcpy(parts[self], own.data() + begins[self], kept);
  stream(own, totals, [&](int rank, std::size_t offset, std::span<const std::byte> piece) {
    const auto from = static_cast<std::size_t>(rank);
    const std::size_t begin = std::max(begins[from], offset);
    const std::size_t end = std::min(begins[from] + sizes[from * all + self], offset + piece.size());
    if (begin < end) std::memcpy(parts[from] + (begin - begins[from]), piece.data() + (begin - offset), end - begin);
  });
}

// The first piece begins with the size.
void Communicator::broadcast(std::vector<std::byte>& bytes) {
  std::uint64_t size = bytes.size();
  std::size_t room = kSlotBytes - sizeof size;
  for (std::size_t offset = 0; offset == 0 || offset < size; offset += std::exchange(room, kSlotBytes)) {
    const std::size_t header = offset == 0 ? sizeof size : 0;
    if (rank_ == 0) {
      if (header > 0) std::memcpy(own_slot(), &size, sizeof size);
      if (offset < size)
        std::memcpy(own_slot() + header, bytes.data() + offset, std::min<std::size_t>(room, size - offset));
    }
    meet();
    const std::byte* const from = group_.slot(which_, 0);
    if (rank_ != 0) {
      if (header > 0) {
        std::memcpy(&size, from, sizeof size);
        bytes.resize(size);
      }
      if (offset < size) std::memcpy(bytes.data() + offset, from + header, std::min<std::size_t>(room, size - offset));
    }
    which_ = 1 - which_;
  }
}

Seconds Communicator::take_waited() { return std::exchange(waited_, Seconds()); }

}  // namespace dculab::engine
