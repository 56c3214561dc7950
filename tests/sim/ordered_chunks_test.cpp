#include "sim/study/ordered_chunks.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/cancellation.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

TEST_CASE("results arrive in order, each once, whichever thread is slow") {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::string> results;
    const auto make_worker = [] {
      return [](std::uint64_t chunk) {
        if (chunk % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return std::to_string(chunk);
      };
    };
    work_in_order({3, 60}, threads, make_worker, [&](std::uint64_t chunk, const std::string& result) {
      CHECK(result == std::to_string(chunk));
      results.push_back(result);
    });
    CHECK(results.size() == 57);
    CHECK(results.front() == "3");
  }
}

TEST_CASE("one thread is the caller's, and makes no worker for nothing") {
  const auto caller = std::this_thread::get_id();
  int workers = 0;
  const auto make_worker = [&] {
    ++workers;
    return [caller](std::uint64_t) -> std::string { return std::this_thread::get_id() == caller ? "here" : "there"; };
  };
  work_in_order({0, 3}, 1, make_worker, [](std::uint64_t, const std::string& where) { CHECK(where == "here"); });
  CHECK(workers == 1);
  work_in_order({3, 3}, 1, make_worker, [](std::uint64_t, const std::string&) { FAIL(); });
  CHECK(workers == 1);
}

TEST_CASE("a failure ends the work where it happened") {
  std::uint64_t delivered = 0;
  const auto make_worker = [] {
    return [](std::uint64_t chunk) -> std::string {
      if (chunk == 10) throw std::runtime_error("chunk 10");
      return "";
    };
  };
  for (const int threads : {1, 3}) {
    delivered = 0;
    const auto run = [&] {
      work_in_order({0, 1000000}, threads, make_worker, [&](std::uint64_t, const std::string&) { ++delivered; });
    };
    CHECK_THROWS_WITH(run(), "chunk 10");
    CHECK(delivered == 10);
  }
}

TEST_CASE("cancelled work ends, on all threads") {
  for (const int threads : {1, 3}) {
    Cancellation cancellation;
    const CancelledBy whole(&cancellation);
    const auto make_worker = [] {
      return [](std::uint64_t chunk) -> std::string {
        if (chunk > 0)  // goes on until it notices
          for (;;) stop_if_cancelled();
        return "";
      };
    };
    std::uint64_t delivered = 0;
    const auto run = [&] {
      work_in_order({0, 1000000}, threads, make_worker, [&](std::uint64_t, const std::string&) {
        ++delivered;
        cancellation.cancel();
      });
    };
    CHECK_THROWS_AS(run(), Cancelled);
    CHECK(delivered == 1);
  }
  CHECK(current_cancellation() == nullptr);
}

}  // namespace
}  // namespace dculab::sim::test
