// Collectives of processes: what each rank gets, whatever the sizes and whoever is late, and what becomes of a group
// one of whose processes dies.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "engine/exchange/child_processes.hpp"
#include "engine/exchange/communicator.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {
namespace {

// Every rank does the same. What a rank finds wrong it throws, and rank 0 hears of it when all meet at the end.
void on_all_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  RankGroup group(ranks);
  ChildProcesses children(group, [&](int rank, const std::function<void()>& watch) {
    Communicator communicator(group, rank, watch);
    body(communicator);
    communicator.meet();
  });
  Communicator communicator(group, 0, [&children] { children.require_alive(); });
  body(communicator);
  communicator.meet();
}

void require_right(bool holds, const Communicator& communicator, const std::string& what) {
  if (!holds) throw std::runtime_error("rank " + std::to_string(communicator.rank()) + ": " + what);
}

// Sleeps now and then, so that ranks come late, sometimes too late for those that only look.
class Delays {
 public:
  explicit Delays(int rank) : random_(static_cast<unsigned>(rank) + 1) {}
  void maybe_sleep() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400));
  }

 private:
  std::minstd_rand random_;
};

float value_of(int rank, std::size_t index) {
  return std::ldexp(static_cast<float>((index * 2654435761U + static_cast<unsigned>(rank) * 40503U) % 4093U) - 2000.0F,
                    static_cast<int>(index % 7) - 9);
}

std::vector<std::size_t> sizes_to_try() {
  std::vector<std::size_t> sizes{1, 2, 7, 1000, kSlotBytes / 4 - 1, kSlotBytes / 4, kSlotBytes / 4 + 1, 100'000};
  if (!kSanitized) sizes.push_back(1'000'000);
  return sizes;
}

}  // namespace

TEST_CASE("an all-reduce adds up in the order of the ranks, so that all have the same bits") {
  for (const int ranks : {1, 2, 3, 4})
    on_all_ranks(ranks, [ranks](Communicator& communicator) {
      Delays delays(communicator.rank());
      for (const std::size_t size : sizes_to_try()) {
        std::vector<float> values(size);
        for (std::size_t i = 0; i < size; ++i) values[i] = value_of(communicator.rank(), i);
        delays.maybe_sleep();
        communicator.all_reduce(values);
        for (std::size_t i = 0; i < size; ++i) {
          float sum = value_of(0, i);
          for (int rank = 1; rank < ranks; ++rank) sum += value_of(rank, i);
          require_right(values[i] == sum, communicator, "sum " + std::to_string(i) + " of " + std::to_string(size));
        }
      }
    });
}

TEST_CASE("a gather puts the ranks' values one after the other, or side by side and cut to the columns asked for") {
  for (const int ranks : {1, 2, 3, 4})
    on_all_ranks(ranks, [ranks](Communicator& communicator) {
      Delays delays(communicator.rank());
      for (const std::size_t size : sizes_to_try()) {
        std::vector<std::size_t> sizes;  // unequal, and nothing of some
        std::vector<float> expected;
        for (int rank = 0; rank < ranks; ++rank) {
          const std::size_t count = rank == 1 ? 0 : size / static_cast<std::size_t>(rank + 1);
          sizes.push_back(count * sizeof(float));
          for (std::size_t i = 0; i < count; ++i) expected.push_back(value_of(rank, i));
        }
        const auto self = static_cast<std::size_t>(communicator.rank());
        std::vector<float> own(sizes[self] / sizeof(float)), all(expected.size());
        for (std::size_t i = 0; i < own.size(); ++i) own[i] = value_of(communicator.rank(), i);
        delays.maybe_sleep();
        communicator.all_gather(std::as_bytes(std::span(own)), sizes, reinterpret_cast<std::byte*>(all.data()));
        require_right(all == expected, communicator, "gathered " + std::to_string(size));
      }
      for (const std::size_t rows : {1U, 3U, 40U}) {
        const std::size_t width = 1500, columns = width * static_cast<std::size_t>(ranks) - 2;
        std::vector<float> own(rows * width), all(rows * columns);
        for (std::size_t i = 0; i < own.size(); ++i) own[i] = value_of(communicator.rank(), i);
        delays.maybe_sleep();
        communicator.all_gather_columns(own, width, columns, all.data());
        for (std::size_t i = 0; i < all.size(); ++i) {
          const std::size_t row = i / columns, column = i % columns;
          const float expected = value_of(static_cast<int>(column / width), row * width + column % width);
          require_right(all[i] == expected, communicator, "column " + std::to_string(column));
        }
      }
    });
}

TEST_CASE("an all-to-all brings each rank what the others have for it, however uneven") {
  for (const int ranks : {1, 2, 3, 4})
    on_all_ranks(ranks, [ranks](Communicator& communicator) {
      const auto all = static_cast<std::size_t>(ranks), self = static_cast<std::size_t>(communicator.rank());
      Delays delays(communicator.rank());
      std::minstd_rand same_everywhere(7);
      for (const std::size_t most : sizes_to_try()) {
        std::vector<std::size_t> counts(all * all), sizes(all * all);
        for (std::size_t& count : counts) count = same_everywhere() % 3 == 0 ? 0 : same_everywhere() % (most + 1);
        for (std::size_t i = 0; i < counts.size(); ++i) sizes[i] = counts[i] * sizeof(float);
        const auto value = [](std::size_t from, std::size_t to, std::size_t i) {
          return value_of(static_cast<int>(10 * from + to), i);
        };
        std::vector<float> own, expected;
        for (std::size_t to = 0; to < all; ++to)
          for (std::size_t i = 0; i < counts[self * all + to]; ++i) own.push_back(value(self, to, i));
        for (std::size_t from = 0; from < all; ++from)
          for (std::size_t i = 0; i < counts[from * all + self]; ++i) expected.push_back(value(from, self, i));
        std::vector<float> received(expected.size());
        delays.maybe_sleep();
        communicator.all_to_all(std::as_bytes(std::span(own)), sizes, reinterpret_cast<std::byte*>(received.data()));
        require_right(received == expected, communicator, "up to " + std::to_string(most) + " values");
      }
    });
}

TEST_CASE("a broadcast has rank 0's bytes, of any number") {
  on_all_ranks(3, [](Communicator& communicator) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, kSlotBytes - 8, kSlotBytes - 7, 3 * kSlotBytes + 5}) {
      std::vector<std::byte> expected(size), bytes;
      for (std::size_t i = 0; i < size; ++i) expected[i] = static_cast<std::byte>(i * 31 + size);
      if (communicator.rank() == 0) bytes = expected;
      communicator.broadcast(bytes);
      require_right(bytes == expected, communicator, std::to_string(size) + " bytes");
    }
  });
}

TEST_CASE("who comes first has waited, who comes last has not") {
  using namespace std::chrono_literals;
  on_all_ranks(2, [](Communicator& communicator) {
    std::vector<float> values(16);
    communicator.all_reduce(values);
    (void)communicator.take_waited();
    if (communicator.rank() == 1) std::this_thread::sleep_for(30ms);
    communicator.all_reduce(values);
    const Seconds waited = communicator.take_waited();
    require_right(communicator.rank() == 1 || waited > Seconds(20e-3), communicator, "did not wait");
    require_right(communicator.rank() == 0 || waited < Seconds(20e-3), communicator, "waited");
    require_right(communicator.take_waited() == Seconds(), communicator, "counts twice");
  });
}

TEST_CASE("what a rank throws is thrown on all of them") {
  RankGroup group(3);
  ChildProcesses children(group, [&](int rank, const std::function<void()>& watch) {
    Communicator communicator(group, rank, watch);
    if (rank == 2) throw InputError("rank 2 has no part");
    for (;;) communicator.meet();  // ends by what rank 2 threw
  });
  Communicator communicator(group, 0, [&children] { children.require_alive(); });
  REQUIRE_THROWS_WITH(communicator.meet(), "rank 2 has no part");
  REQUIRE_THROWS_AS(communicator.meet(), InputError);
}

TEST_CASE("a rank that is killed ends the work of the others, and no process is left") {
  for (const int killed : {1, 2}) {
    std::vector<int> ids;
    {
      RankGroup group(3);
      ChildProcesses children(group, [&](int rank, const std::function<void()>& watch) {
        Communicator communicator(group, rank, watch);
        std::vector<float> values(1000);
        for (;;) communicator.all_reduce(values);
      });
      ids = children.process_ids();
      Communicator communicator(group, 0, [&children] { children.require_alive(); });
      std::vector<float> values(1000);
      for (int round = 0; round < 100; ++round) communicator.all_reduce(values);
      kill(ids[static_cast<std::size_t>(killed - 1)], SIGKILL);
      const auto exchange = [&] {
        for (int round = 0; round < 1'000'000; ++round) communicator.all_reduce(values);
      };
      REQUIRE_THROWS_WITH(exchange(),
                          Catch::Contains("rank " + std::to_string(killed) + " of 3 was ended by signal 9"));
    }
    for (const int id : ids) {
      INFO("process " << id);
      REQUIRE(kill(id, 0) == -1);  // it has ended, and was waited for
      REQUIRE(errno == ESRCH);
    }
  }
}

TEST_CASE("ranks whose parent is gone end by themselves") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(ends[0]);
    RankGroup group(2);
    ChildProcesses children(group, [&](int rank, const std::function<void()>& watch) {
      Communicator communicator(group, rank, watch);
      communicator.meet();
    });
    const int child = children.process_ids().front();
    if (write(ends[1], &child, sizeof child) != sizeof child) _exit(1);
    kill(getpid(), SIGKILL);
  }
  close(ends[1]);
  int child = 0;
  REQUIRE(read(ends[0], &child, sizeof child) == sizeof child);
  int status = 0;
  REQUIRE(waitpid(parent, &status, 0) == parent);
  char byte = 0;
  REQUIRE(read(ends[0], &byte, 1) == 0);  // once the last process that has the other end is gone
  close(ends[0]);
}

}  // namespace dculab::engine
