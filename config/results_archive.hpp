// What scripts/gpu-validate packs on somebody's GPU, results.tar.gz: traces, and the machine that was probed there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::config {

struct ResultsArchive {
  std::vector<Trace> traces;            // of what a machine is fitted to
  std::vector<Trace> others;            // of other formats and families, in folders called "others"
  std::optional<sim::Machine> machine;  // of a GPU that was emulated there is none
};

// `text` is a tar archive (files/tar.hpp). Throws InputError, naming `file` or its member, for an archive that is
// refused there, whose traces hold more than 256 MiB in all, or that has none, and for what cannot be read. Members
// that are no results are left alone.
[[nodiscard]] ResultsArchive read_results_archive(const std::string& file, std::string_view text);

}  // namespace dculab::config
