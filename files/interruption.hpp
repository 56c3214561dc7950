// What is undone when INT, TERM or HUP ends the program half-way: unfinished files, a progress bar on the terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

namespace dculab::files {

// To be called first in main, before any other thread begins. From then on a thread waits for these signals: it runs
// the actions that stand, the last one first, and ends the program by the same signal. A second signal ends the program
// at once. Signals that were ignored or blocked when the program began, as under nohup, stay so.
void undo_when_interrupted();

// Runs the same actions when the program ends without destructors.
void undo_unfinished() noexcept;

// While the lock is held, the program is not interrupted. Once it is interrupted, no thread gets the lock again. For
// steps that make or keep what an action would undo.
[[nodiscard]] std::unique_lock<std::recursive_mutex> without_interruption();

enum class UndoOrder : std::uint8_t { latest_first, after_others };

// An action that stands for as long as the object lives.
class Undo {
 public:
  explicit Undo(std::function<void()> action, UndoOrder order = UndoOrder::latest_first);
  ~Undo();
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

 private:
  std::list<std::function<void()>>::iterator place_;
};

}  // namespace dculab::files
