#include "config/results_archive.hpp"

#include <algorithm>

#include "config/machine_file.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "files/gzip.hpp"
#include "files/tar.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kMostTraceText = std::size_t{256} << 20U;  // unpacked; an H200's have 3 MB

// The last part of the path.
[[nodiscard]] std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

[[nodiscard]] bool is_trace(std::string_view path) {
  const std::string_view name = file_name(path);
  return !name.starts_with('.') && (name.ends_with(".jsonl") || name.ends_with(".jsonl.gz"));
}

[[nodiscard]] bool is_of_others(std::string_view path) {
  return ("/" + std::string(path)).find("/others/") != std::string::npos;
}

}  // namespace

ResultsArchive read_results_archive(const std::string& file, std::string_view text) {
  ResultsArchive archive;
  std::size_t room = kMostTraceText;
  for (const files::TarMember& member : files::tar_members(file, text)) {
    const std::string name = file + "/" + files::shown_name(member.name);
    if (is_trace(member.name)) {
      const std::string lines = files::unpacked(name, std::string(member.content), room);
      room -= std::min(room, lines.size());
      (is_of_others(member.name) ? archive.others : archive.traces).push_back(read_trace(name, lines));
    } else if (file_name(member.name) == "machine.yaml") {
      if (archive.machine) throw InputError(file, "has machine.yaml twice; pack the results of one GPU");
      archive.machine = read_machine(name, std::string(member.content));
    }
  }
  if (archive.traces.empty() && archive.others.empty())
    throw InputError(file, "is an archive without traces (*.jsonl.gz); give what scripts/gpu-validate packed");
  return archive;
}

}  // namespace dculab::config
