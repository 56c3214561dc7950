// SQLite databases that profilers write: rocpd of rocprofv3 (its default since ROCm 7, tables rocpd_*), and the export
// of Nsight Systems (`nsys export --type sqlite`, tables CUPTI_ACTIVITY_KIND_*).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/profile/profile_file.hpp"

namespace dculab::config {

[[nodiscard]] bool is_database(std::string_view text);

struct DatabaseKernels {
  Profiler profiler = Profiler::rocprofv3;
  std::vector<KernelRecord> kernels;
};

// `text` is the whole database. Throws InputError for one of another program, for one that is damaged, and where
// kernels of graphs were recorded as a whole.
[[nodiscard]] DatabaseKernels read_profile_database(const std::string& file, const std::string& text);

}  // namespace dculab::config
