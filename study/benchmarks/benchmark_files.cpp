#include "study/benchmarks/benchmark_files.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>

#include "config/known_format.hpp"
#include "core/error.hpp"
#include "files/gzip.hpp"
#include "files/input.hpp"

namespace dculab::study {
namespace {

// Enough of a file to tell what it is.
[[nodiscard]] std::optional<config::KnownFormat> format_of(const std::string& file) {
  constexpr std::size_t kBeginning = std::size_t{1} << 20U;
  std::string beginning;
  const auto next = files::read_text_pieces(file, std::numeric_limits<std::size_t>::max());
  for (std::string_view piece = next(); !piece.empty() && beginning.size() < kBeginning; piece = next())
    beginning += piece;
  if (!beginning.starts_with("\x1f\x8b")) return config::recognize(beginning);
  return config::recognize(files::unpacked(file, files::read_text(file, files::kLargestText), files::kLargestText));
}

// Of a folder the runs of `vllm bench sweep`, or else every result of a benchmark tool.
[[nodiscard]] std::vector<std::string> results_in(const std::string& folder) {
  std::vector<std::string> runs, results;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    const auto ends = [&name](const char* suffix) { return name.ends_with(suffix); };
    const bool may_be = ends(".json") || ends(".jsonl") || ends(".csv") || ends(".sql") || ends(".gz");
    if (!entry.is_regular_file() || !may_be) continue;
    const auto format = format_of(path);
    if (format && config::is_benchmark(*format))
      (name.starts_with("run=") && ends(".json") ? runs : results).push_back(path);
  }
  if (!runs.empty()) results = std::move(runs);
  if (results.empty()) throw InputError(folder, "has no results of a benchmark tool");
  std::ranges::sort(results);
  return results;
}

}  // namespace

std::vector<std::string> files_below(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path))
      std::ranges::move(results_in(path), std::back_inserter(files));
    else
      files.push_back(path);
  }
  return files;
}

MeasuredFiles kind_of_files(const std::vector<std::string>& files) {
  std::vector<std::string> benchmarks, others;
  for (const std::string& file : files) {
    if (std::filesystem::is_directory(file)) {
      benchmarks.push_back(file);
      continue;
    }
    if (!std::filesystem::exists(file)) throw InputError(file, "there is no such file");
    const bool is_text = std::filesystem::is_regular_file(file) || files::is_handed_over(file);
    const auto format = is_text ? format_of(file) : std::nullopt;
    if (format && config::is_benchmark(*format))
      benchmarks.push_back(file);
    else if (!format || *format == config::KnownFormat::trace || *format == config::KnownFormat::results_archive)
      others.push_back(file);
    else
      throw InputError(file, "is " + std::string(config::description(*format)));
  }
  if (!benchmarks.empty() && !others.empty())
    throw InputError(others.front(),
                     "is no result of a benchmark tool, but " + benchmarks.front() + " is; give one kind at a time");
  return benchmarks.empty() ? MeasuredFiles::traces : MeasuredFiles::benchmarks;
}

}  // namespace dculab::study
