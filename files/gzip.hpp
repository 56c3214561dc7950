// Files that are packed by gzip, as profilers and traces are kept.
#pragma once

#include <cstddef>
#include <string>

namespace dculab::files {

// `text` unpacked where it is a gzip file, as it is otherwise. Throws InputError, naming `file`, for one that is
// damaged or larger than `limit` bytes unpacked.
[[nodiscard]] std::string unpacked(const std::string& file, std::string text, std::size_t limit);

}  // namespace dculab::files
