#include "config/profile/profile_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "config/csv_text.hpp"
#include "config/known_format.hpp"
#include "config/map_reader.hpp"
#include "config/profile/profile_columns.hpp"
#include "config/profile/profile_database.hpp"
#include "config/profile/trace_events.hpp"
#include "fields/printable_text.hpp"
#include "files/gzip.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestProfile = std::size_t{1} << 30;
constexpr int kLastHeaderLine = 64;   // nsys and wrapper scripts print a few lines before the table
constexpr double kLatestTime = 4e18;  // ns: a begin and a duration add up in 63 bits

// Nanoseconds, in whole or decimal figures of `unit_ns`. Throws InputError without a place.
std::int64_t read_time(std::string_view column, std::string_view text, double unit_ns) {
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (is_whole && unit_ns == 1 && whole >= 0 && static_cast<double>(whole) < kLatestTime) return whole;
  double value = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_time = failure == std::errc() && stop == text.data() + text.size() && value >= 0;
  if (!is_time || !(value * unit_ns < kLatestTime))
    throw InputError(std::string(column) + ": " + in_quotes(text) + " is not a time; export the table again");
  return std::llround(value * unit_ns);
}

KernelRecord read_record(const CsvRecord& record, const ProfileColumns& columns) {
  if (record.cells.size() != columns.count)
    throw InputError(std::to_string(record.cells.size()) + " cells, but the header names " +
                     std::to_string(columns.count) + " columns; quote names that hold commas");
  KernelRecord kernel;
  kernel.line = record.line;
  kernel.name = record.cells[columns.name];
  if (kernel.name.empty()) throw InputError("the kernel has no name; export the table again");
  kernel.begin_ns = read_time("begin", record.cells[columns.begin], columns.begin_unit_ns);
  kernel.end_ns =
      columns.end ? read_time("end", record.cells[*columns.end], 1)
                  : kernel.begin_ns + read_time("duration", record.cells[*columns.duration], columns.duration_unit_ns);
  if (kernel.end_ns < kernel.begin_ns)
    throw InputError("the kernel ends before it begins; the profiler lost its clock, record again");
  if (columns.device) kernel.device = record.cells[*columns.device];
  return kernel;
}

std::string name_list(Profiler profiler) {
  if (profiler != Profiler::automatic) return std::string(name(profiler));
  return "rocprof, rocprofv3, hipprof, nsys or PyTorch";
}

[[noreturn]] void refuse_summary(const std::string& file, int line, Profiler profiler) {
  std::string how;
  for (const Profiler each : {Profiler::rocprof, Profiler::rocprofv3, Profiler::hipprof, Profiler::nsys})
    if (profiler == each || profiler == Profiler::automatic)
      how.append(how.empty() ? "" : "; or ").append(how_to_record(each));
  throw InputError(file, line,
                   "totals per kernel name (they have neither times nor order, so no step can be found in them); "
                   "record single kernels: " +
                       how);
}

// Reads up to the header, over whatever lines stand before it.
ProfileColumns read_header(const std::string& file, CsvReader& reader, Profiler profiler) {
  CsvRecord record;
  while (true) {
    try {
      if (!reader.next(record) || record.line > kLastHeaderLine) break;
    } catch (const InputError&) {
      continue;  // a line of prose may hold quotes
    }
    if (const auto columns = find_columns(record.cells, profiler)) return *columns;
    if (begins_summary(record.cells)) refuse_summary(file, record.line, profiler);
  }
  const std::string wanted = profiler == Profiler::automatic ? "" : " (" + wanted_columns(profiler) + ")";
  throw InputError(file, "no table of kernels of " + name_list(profiler) + wanted + " in the first " +
                             std::to_string(kLastHeaderLine) +
                             " lines; give the file that docs/howto/import-a-profile.md describes");
}

void read_rows(const std::string& file, CsvReader& reader, const ProfileColumns& columns, Profile& profile) {
  ProblemList problems(file);
  CsvRecord record;
  for (bool more = true; more;) {
    try {
      more = reader.next(record);
      if (!more) break;
      const bool is_kernel =
          !columns.kind || record.cells.size() != columns.count || record.cells[*columns.kind] == "KERNEL_DISPATCH";
      if (is_kernel) profile.kernels.push_back(read_record(record, columns));
    } catch (const InputError& error) {
      problems.add({record.line, 0}, "", error.what());
    }
  }
  problems.throw_if_any();
}

void refuse_several_devices(const Profile& profile) {
  std::set<std::string> devices;
  for (const KernelRecord& kernel : profile.kernels) devices.insert(kernel.device);
  if (devices.size() < 2) return;
  std::string text;
  for (const std::string& device : devices)
    text.append(text.empty() ? "" : ", ").append(device.empty() ? "''" : device);
  throw InputError(profile.file, "kernels of " + std::to_string(devices.size()) + " devices (" + text +
                                     "); a step is imported for one: profile with HIP_VISIBLE_DEVICES=0 or "
                                     "CUDA_VISIBLE_DEVICES=0, or keep the rows of one device");
}

}  // namespace

std::string_view name(Profiler profiler) {
  switch (profiler) {
    case Profiler::automatic:
      return "auto";
    case Profiler::rocprof:
      return "rocprof";
    case Profiler::rocprofv3:
      return "rocprofv3";
    case Profiler::hipprof:
      return "hipprof";
    case Profiler::nsys:
      return "nsys";
    case Profiler::pytorch:
      return "pytorch";
  }
  return "";
}

Profile read_profile(const std::string& file, const std::string& text, Profiler profiler) {
  Profile profile;
  profile.file = file;
  if (is_database(text)) {
    DatabaseKernels found = read_profile_database(file, text);
    profile.profiler = found.profiler;
    profile.kernels = std::move(found.kernels);
  } else if (is_json(text)) {
    if (const auto format = recognize(text); format && (is_benchmark(*format) || *format == KnownFormat::trace))
      throw InputError(file, "is " + std::string(description(*format)));
    TraceEvents found = read_trace_events(file, text);
    profile.profiler = found.profiler;
    profile.kernels = std::move(found.kernels);
  } else if (profiler == Profiler::pytorch) {
    throw InputError(file, "is no trace of PyTorch's profiler; record with " + std::string(how_to_record(profiler)));
  } else {
    CsvReader reader(text);
    const ProfileColumns columns = read_header(file, reader, profiler);
    profile.profiler = columns.profiler;
    read_rows(file, reader, columns, profile);
  }
  if (profiler != Profiler::automatic && profile.profiler != profiler)
    throw InputError(file, "is a profile of " + std::string(name(profile.profiler)) + ", not of " +
                               std::string(name(profiler)) + ": " + std::string(how_to_record(profiler)));
  if (profile.kernels.empty()) throw InputError(file, "no kernel in the table; profile a run that uses the device");
  refuse_several_devices(profile);
  std::stable_sort(profile.kernels.begin(), profile.kernels.end(),
                   [](const KernelRecord& a, const KernelRecord& b) { return a.begin_ns < b.begin_ns; });
  return profile;
}

Profile read_profile_file(const std::string& path, Profiler profiler) {
  const std::string text = files::unpacked(path, files::read_text(path, kLargestProfile), kLargestProfile);
  std::error_code error;
  if (is_database(text) && std::filesystem::file_size(path + "-wal", error) > 0 && !error)
    throw InputError(path, "does not hold all that was recorded: the rest is in " + path +
                               "-wal; write it back with: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'");
  return read_profile(path, text, profiler);
}

}  // namespace dculab::config
