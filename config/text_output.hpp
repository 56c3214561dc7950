// Writes files whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace dculab::config {

// Writes a temporary file beside `path` and renames it: a reader sees the old content or the new, and a failure leaves
// nothing behind. Devices and pipes are written directly. Throws InputError.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace dculab::config
