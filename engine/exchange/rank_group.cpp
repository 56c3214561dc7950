#include "engine/exchange/rank_group.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#else
#include <chrono>
#include <thread>
#endif

namespace dculab::engine {
namespace {

constexpr std::size_t kMostMessage = 1024;
constexpr long kLongestSleep = 10'000'000;  // ns: how soon a rank notices that another one has died
constexpr std::size_t kPage = 4096;

[[nodiscard]] constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

struct RankGroup::Header {
  std::array<Rank, kMostRanks> ranks{};
  std::atomic<std::uint32_t> failing{0};  // who makes it 1 writes the failure
  std::atomic<std::uint32_t> failure{0};  // a FailureKind, once the message is there
  std::array<char, kMostMessage> message{};
};

RankGroup::RankGroup(int ranks)
    : ranks_(ranks), size_(whole_pages(sizeof(Header)) + 2 * static_cast<std::size_t>(ranks) * kSlotBytes) {
  void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  header_ = new (memory) Header();
}

RankGroup::~RankGroup() { munmap(memory_, size_); }

std::byte* RankGroup::slot(int which, int rank) const {
  return memory_ + whole_pages(sizeof(Header)) + static_cast<std::size_t>(which * ranks_ + rank) * kSlotBytes;
}

RankGroup::Rank& RankGroup::rank(int index) const { return header_->ranks[static_cast<std::size_t>(index)]; }

void RankGroup::fail(FailureKind kind, std::string_view message) noexcept {
  if (header_->failing.exchange(1) != 0) return;
  const std::size_t length = std::min(message.size(), kMostMessage - 1);
  std::memcpy(header_->message.data(), message.data(), length);
  header_->message[length] = '\0';
  header_->failure.store(static_cast<std::uint32_t>(kind), std::memory_order_release);
  for (int index = 0; index < ranks_; ++index) wake_all(rank(index).arrivals);
}

FailureKind RankGroup::failure() const {
  return static_cast<FailureKind>(header_->failure.load(std::memory_order_acquire));
}

std::string RankGroup::failure_message() const { return header_->message.data(); }

#ifdef __linux__

// Not FUTEX_PRIVATE_FLAG: the word is of several processes.
void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  const timespec longest{0, kLongestSleep};
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAIT, old, &longest, nullptr, 0);
}

void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), FUTEX_WAKE, kMostRanks, nullptr, nullptr, 0);
}

#else

void sleep_while(const std::atomic<std::uint32_t>& /*word*/, std::uint32_t /*old*/) noexcept {
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void wake_all(const std::atomic<std::uint32_t>& /*word*/) noexcept {}

#endif

}  // namespace dculab::engine
