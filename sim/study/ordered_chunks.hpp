// Numbered pieces of work on several threads, whose results arrive in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dculab::sim {

struct ChunkRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using ChunkWorker = std::function<std::string(std::uint64_t chunk)>;

// Each thread works with a worker of its own from `make_worker`; `deliver` is called on this thread, in order, one at a
// time. At most a few results a thread wait to be delivered. The first exception, in the order of the chunks, is thrown
// here once the threads have stopped; what cancels this thread's work cancels theirs. Threads that the system does not
// grant are done without; one thread is this one. Precondition: threads >= 1.
void work_in_order(ChunkRange chunks, int threads, const std::function<ChunkWorker()>& make_worker,
                   const std::function<void(std::uint64_t chunk, std::string result)>& deliver);

}  // namespace dculab::sim
