#include "engine/executors/thread_shortage.hpp"

#include <atomic>

namespace dculab::engine {
namespace {

std::atomic<ThreadShortageHandler> handler_of_program{nullptr};

}  // namespace

void set_thread_shortage_handler(ThreadShortageHandler handler) { handler_of_program.store(handler); }

void report_threads(int had, int wanted) {
  if (had >= wanted) return;
  if (const ThreadShortageHandler handler = handler_of_program.exchange(nullptr)) handler(had, wanted);
}

}  // namespace dculab::engine
