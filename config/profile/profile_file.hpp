// What a GPU profiler recorded: every kernel with its begin and end, from the table, trace or database that each
// profiler writes. Any of them may be packed by gzip.
//
//   rocprof    results.csv of `rocprof --timestamp on` or `--stats`
//   rocprofv3  *_results.db of `rocprofv3 --kernel-trace` (rocpd), or *_kernel_trace.csv of --output-format csv
//   hipprof    the JSON of `hipprof --hip-trace --output-type 0`, the CSV of `hipprof --pmc --pmc-type 3`, or the table
//              HIPOPS of its database as CSV
//   nsys       `nsys export --type sqlite`, or `nsys stats --report cuda_gpu_trace --format csv`
//   pytorch    *.pt.trace.json of torch.profiler, vLLM and SGLang
//
// Columns are found by name, in any order; which names, and where they are documented: docs/reference/import.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace dculab::config {

enum class Profiler : std::uint8_t { automatic, rocprof, rocprofv3, hipprof, nsys, pytorch };
[[nodiscard]] std::string_view name(Profiler profiler);

// One execution of a kernel, or a copy, on the device. Times are on the profiler's clock.
struct KernelRecord {
  int line = 0;  // in the file; 0 for JSON, which has none
  std::string name;
  std::string device;  // as the profiler writes it, "" where it does not
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  [[nodiscard]] Seconds duration() const { return static_cast<double>(end_ns - begin_ns) * kNanosecond; }
};

struct Profile {
  std::string file;
  Profiler profiler = Profiler::automatic;
  std::vector<KernelRecord> kernels;  // by begin
};

// `text`: unpacked. Profiler::automatic tells them apart by their content. Throws InputError with every problem as
// file:line; also where the file is a summary without times of single kernels, or holds kernels of several devices.
[[nodiscard]] Profile read_profile(const std::string& file, const std::string& text, Profiler profiler);
[[nodiscard]] Profile read_profile_file(const std::string& path, Profiler profiler);

}  // namespace dculab::config
