// Names of temporary files: whose they are, and which of them are abandoned.
#pragma once

#include <string>

namespace dculab::files {

// TARGET.part-PROCESS-MACHINE-TIMERANDOM, new at each call. MACHINE is one boot of a machine and one of its process
// namespaces, so that a process number means something. A long name is cut to what a folder takes.
[[nodiscard]] std::string new_temporary_name(const std::string& target);

// Removes the temporary files and folders of `target` that are this user's and abandoned: of a process of this machine
// that has ended, or of another machine (this one before a reboot, for example) and untouched for a day.
void remove_stale_temporaries(const std::string& target);

// The first temporary name of `target` that is there and older than `own`. Empty where there is none.
[[nodiscard]] std::string earlier_temporary(const std::string& target, const std::string& own);

}  // namespace dculab::files
