#include "files/interruption.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <new>
#include <thread>
#include <utility>

namespace dculab::files {
namespace {

constexpr int kShellOffset = 128;  // what a shell adds to the number of the signal that ended a program

struct Actions {
  std::recursive_mutex mutex;
  std::list<std::function<void()>> list;
};

// Never destroyed: the waiting thread may use it while the program ends. Takes no memory: it is asked for when there is
// none.
Actions& actions() {
  alignas(Actions) static std::byte place[sizeof(Actions)];
  static Actions& all = *new (place) Actions;
  return all;
}

// Those that would end the program now.
[[nodiscard]] sigset_t ending_signals() {
  sigset_t blocked, ending;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ::sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_DFL && ::sigismember(&blocked, signal) == 0) ::sigaddset(&ending, signal);
  }
  return ending;
}

void run(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception&) {  // no memory, say: the others may still do
  }
}

void run_all() {
  for (auto action = actions().list.rbegin(); action != actions().list.rend(); ++action) run(*action);
}

void wait_and_undo(const sigset_t& ending) {
  int signal = 0;
  if (::sigwait(&ending, &signal) != 0) return;
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);  // this thread takes the second one, which ends the program
  actions().mutex.lock();                            // for good
  run_all();
  ::kill(::getpid(), signal);
  ::_exit(kShellOffset + signal);  // the first process of a container is not ended by its own signal
}

}  // namespace

void undo_when_interrupted() {
  const sigset_t ending = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  try {
    actions();
    std::thread(wait_and_undo, ending).detach();
  } catch (const std::exception&) {  // no thread or no memory can be had: the signals do what they always do
    ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  }
}

void undo_unfinished() noexcept {
  if (actions().mutex.try_lock()) run_all();
}

std::unique_lock<std::recursive_mutex> without_interruption() { return std::unique_lock(actions().mutex); }

Undo::Undo(std::function<void()> action, UndoOrder order) {
  const auto lock = without_interruption();
  auto& list = actions().list;  // run from its end
  place_ = list.insert(order == UndoOrder::after_others ? list.begin() : list.end(), std::move(action));
}

Undo::~Undo() {
  const auto lock = without_interruption();
  actions().list.erase(place_);
}

}  // namespace dculab::files
