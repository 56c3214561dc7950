// Work that takes long: without the interpreter's lock, with progress, and interrupted by Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>

#include "present/output/report.hpp"

namespace dculab::python {

// From any thread: what is being done, and which share of it is.
using Progress = std::function<void(const std::string& label, double share)>;

// Runs `work` on a thread of its own, with the interpreter's lock released, so that other threads of Python go on.
// Twenty times a second this thread takes the lock to call `on_progress`, if it is not None, with the latest label and
// share, and to run handlers of signals. Where one of them raises, KeyboardInterrupt for one, the work is cancelled and
// the exception goes on once it has ended. What `work` throws is thrown here.
[[nodiscard]] present::Report call_interruptibly(const std::function<present::Report(const Progress&)>& work,
                                                 const nanobind::object& on_progress);

}  // namespace dculab::python
