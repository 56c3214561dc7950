#include "engine/exchange/child_processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

constexpr std::chrono::milliseconds kPatience(2000), kBetweenLooks(1);
constexpr int kChildFailed = 3;

// A child leaves it to its parent what a signal means: the handlers of the program remove its files.
void forget_handlers() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_DFL);
}

[[noreturn]] void run_child(RankGroup& group, int rank, int parent, const ChildProcesses::Body& body) {
  forget_handlers();
  const auto watch = [parent] {
    if (getppid() != parent) _exit(kChildFailed);
  };
  try {
    body(rank, watch);
  } catch (const InputError& error) {
    group.fail(FailureKind::input, error.what());
    _exit(kChildFailed);
  } catch (const std::bad_alloc&) {
    group.fail(FailureKind::input, "a process that shares the model has no memory left; use a smaller model");
    _exit(kChildFailed);
  } catch (const std::exception& error) {
    group.fail(FailureKind::other, error.what());
    _exit(kChildFailed);
  }
  _exit(0);
}

[[nodiscard]] std::string end_of(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "ended with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

ChildProcesses::ChildProcesses(RankGroup& group, const Body& body) : group_(group) {
  const int self = getpid();
  for (int rank = 1; rank < group.ranks(); ++rank) {
    const int child = fork();
    if (child == 0) run_child(group, rank, self, body);
    if (child < 0) {
      const int reason = errno;
      kill_all();
      throw InputError("the system refuses a process for rank " + std::to_string(rank) + " of " +
                       std::to_string(group.ranks()) + ": " + std::strerror(reason));
    }
    children_.push_back(child);
    statuses_.push_back(0);
  }
}

bool ChildProcesses::has_ended(std::size_t child) {
  if (children_[child] == 0) return true;
  const pid_t found = waitpid(children_[child], &statuses_[child], WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  children_[child] = 0;
  return true;
}

void ChildProcesses::require_alive() {
  for (std::size_t child = 0; child < children_.size(); ++child) {
    if (!has_ended(child)) continue;
    const std::string message = "the process of rank " + std::to_string(child + 1) + " of " +
                                std::to_string(group_.ranks()) + " " + end_of(statuses_[child]) +
                                "; the model that it shared cannot be run any more";
    group_.fail(FailureKind::input, message);
    const bool is_told = group_.failure() != FailureKind::none;  // by the child itself, or now
    throw InputError(is_told ? group_.failure_message() : message);
  }
}

void ChildProcesses::kill_all() {
  for (std::size_t child = 0; child < children_.size(); ++child) {
    if (children_[child] == 0) continue;
    kill(children_[child], SIGKILL);
    while (waitpid(children_[child], &statuses_[child], 0) < 0 && errno == EINTR) continue;
    children_[child] = 0;
  }
}

ChildProcesses::~ChildProcesses() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (std::size_t child = 0; child < children_.size(); ++child)
    while (!has_ended(child) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kBetweenLooks);
  kill_all();
}

}  // namespace dculab::engine
