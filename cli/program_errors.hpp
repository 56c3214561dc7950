// The door by which errors leave the program: one line on standard error and an exit code, also without memory.
#pragma once

namespace dculab::cli {

constexpr int kFailed = 1;    // the program, or a device
constexpr int kBadInput = 2;  // a file, an option, a value; and what the system does not grant: memory, threads, files

// Says what the exception that is being handled means, and returns the exit code. Takes no memory.
[[nodiscard]] int report_exception() noexcept;

}  // namespace dculab::cli
