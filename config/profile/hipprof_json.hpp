// The trace that `hipprof --hip-trace --output-type 0` writes: Chrome's trace events, kernels in category HIPOPS and
// copies in HIPCOPY, with BeginNs and EndNs among their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/profile/profile_file.hpp"

namespace dculab::config {

// Whether the text begins as JSON does; no CSV table of kernels begins so.
[[nodiscard]] bool is_hipprof_json(std::string_view text);

// Throws InputError naming the event. In the file's order.
[[nodiscard]] std::vector<KernelRecord> read_hipprof_json(const std::string& file, const std::string& text);

}  // namespace dculab::config
