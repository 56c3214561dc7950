// Runs code where the system grants few threads, as `ulimit -u` does.
#pragma once

#ifdef __linux__
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dculab {

// In a process of its own, which may start `more` threads besides its first one: what work() -> int returned, 0 to 99,
// or 102 where it threw. A system's limit counts all threads of a user and does not hold for root, so root becomes
// somebody else. For any other user `more` must be 0: what else that user runs counts too.
template <typename Work>
[[nodiscard]] int with_few_threads(rlim_t more, Work&& work) {
  constexpr uid_t kNobodyElse = 54321;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{more + 1, more + 1};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) _exit(100);
    if (getuid() == 0 && setresuid(kNobodyElse, kNobodyElse, kNobodyElse) != 0) _exit(101);
    try {
      _exit(work());
    } catch (...) {  // Catch is not to go on in this process
      _exit(102);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace dculab
#endif
