// Chrome's trace events as two profilers write them.
//
//   hipprof  `hipprof --hip-trace --output-type 0`: kernels in category HIPOPS and copies in HIPCOPY, with BeginNs and
//            EndNs among their arguments
//   pytorch  torch.profiler (Kineto): categories kernel, gpu_memcpy and gpu_memset, with `ts` and `dur` in us and the
//            device among their arguments
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/profile/profile_file.hpp"

namespace dculab::config {

// Whether the text begins as JSON does; no CSV table of kernels begins so.
[[nodiscard]] bool is_json(std::string_view text);

struct TraceEvents {
  Profiler profiler = Profiler::hipprof;
  std::vector<KernelRecord> kernels;  // in the file's order
};

// Throws InputError naming the event.
[[nodiscard]] TraceEvents read_trace_events(const std::string& file, const std::string& text);

}  // namespace dculab::config
