// What processes that work together share: a place where they meet, and memory for what they hand each other.
//
// The memory is anonymous and shared, so the group is made before the processes are: those that are forked afterwards
// find it at the same address.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lower/shared_memory/geometry.hpp"

namespace dculab::engine {

inline constexpr int kMostRanks = 8;

// Of what a rank hands over at a time: small enough that the slots of a few ranks stay in a second-level cache, large
// enough that meetings cost little beside the copies.
inline constexpr std::size_t kSlotBytes = lower::shared_memory::kSlotBytes;

// What ended the work of a group.
enum class FailureKind : std::uint32_t { none, input, other };

class RankGroup {
 public:
  // `ranks` from 1 to kMostRanks. Throws std::bad_alloc where the memory cannot be had.
  explicit RankGroup(int ranks);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  [[nodiscard]] int ranks() const { return ranks_; }

  // What `rank` hands over, kSlotBytes. There are two of each, so that one is read while the next is written.
  [[nodiscard]] std::byte* slot(int which, int rank) const;

  // Of one rank; a cache line of its own.
  struct alignas(64) Rank {
    std::atomic<std::uint32_t> arrivals{0};                 // meetings that it has come to
    std::atomic<std::uint32_t> sleepers{0};                 // ranks that sleep until it comes to the next
    std::array<std::atomic<std::int64_t>, 2> arrived_at{};  // nanoseconds of the steady clock: at even and odd meetings
  };
  [[nodiscard]] Rank& rank(int index) const;

  // The first failure counts. Wakes all who wait.
  void fail(FailureKind kind, std::string_view message) noexcept;
  [[nodiscard]] FailureKind failure() const;
  [[nodiscard]] std::string failure_message() const;  // of a failure that is not `none`

 private:
  struct Header;

  int ranks_;
  std::byte* memory_ = nullptr;  // the header, then the slots
  std::size_t size_ = 0;
  Header* header_ = nullptr;
};

// Sleeps while `word` is `old`, some ten milliseconds at most, and wakes all who sleep so.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept;
void wake_all(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace dculab::engine
