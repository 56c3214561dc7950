// Processes that this one makes of itself, to work with it as the ranks of a group.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "engine/exchange/rank_group.hpp"

namespace dculab::engine {

// Rank 0 is this process. A child runs `body` and ends; it never returns into the program, flushes none of its streams
// and runs none of its exit handlers. Whatever a child throws becomes the failure of the group. A child whose parent is
// gone ends by itself the next time it waits.
//
// Fork while the process has one thread: a child has the one that called, and locks that others held stay locked.
class ChildProcesses {
 public:
  // body(rank, watch): `watch` is for the child's Communicator. Throws InputError where the system refuses a process.
  using Body = std::function<void(int rank, const std::function<void()>& watch)>;
  ChildProcesses(RankGroup& group, const Body& body);
  // Whoever has not ended within a moment is killed.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // For the Communicator of rank 0. Throws InputError where a child has ended, and lets the others know.
  void require_alive();

  [[nodiscard]] const std::vector<int>& process_ids() const { return children_; }  // of ranks 1 on

 private:
  [[nodiscard]] bool has_ended(std::size_t child);
  void kill_all();

  RankGroup& group_;
  std::vector<int> children_;  // 0: ended, and waited for
  std::vector<int> statuses_;  // as waitpid has it
};

}  // namespace dculab::engine
