// The system may grant fewer threads than were asked for. That is no error: those that there are do the work. Whoever
// makes a team reports it here, and the program decides how its user is told.
#pragma once

namespace dculab::engine {

using ThreadShortageHandler = void (*)(int had, int wanted);

// The program sets it once, before any work. Without a handler a shortage is passed over.
void set_thread_shortage_handler(ThreadShortageHandler handler);

// Calls the handler if `had` < `wanted`, and no more than once in a process: later teams fall short for the same
// reason.
void report_threads(int had, int wanted);

}  // namespace dculab::engine
