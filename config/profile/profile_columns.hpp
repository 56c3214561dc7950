// How each profiler names the columns of its table of kernels.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/profile/profile_file.hpp"

namespace dculab::config {

// Where a table's columns stand. A table has either ends or durations.
struct ProfileColumns {
  Profiler profiler = Profiler::automatic;
  std::size_t count = 0;  // of all columns
  std::size_t name = 0;
  std::size_t begin = 0;
  std::optional<std::size_t> end, duration, device;
  std::optional<std::size_t> kind;  // rocprofv3: rows of other kinds than KERNEL_DISPATCH are not kernels
  double begin_unit_ns = 1;         // nsys can be told to write other units
  double duration_unit_ns = 1;
};

// The columns of `profiler`'s table, or of the first profiler whose table these cells begin; nothing when they do not.
[[nodiscard]] std::optional<ProfileColumns> find_columns(std::span<const std::string> cells, Profiler profiler);

// Whether these cells begin a table of totals per kernel name, which all four profilers write as well.
[[nodiscard]] bool begins_summary(std::span<const std::string> cells);

// For messages: "KernelName, BeginNs and EndNs".
[[nodiscard]] std::string wanted_columns(Profiler profiler);

// What to type to get the table of single kernels.
[[nodiscard]] std::string_view how_to_record(Profiler profiler);

}  // namespace dculab::config
