// Standard output, which may be full, closed or a pipe without a reader: what is printed has been written, or the
// command fails.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dculab::present {

// Gives standard input, output and error that are closed (`>&-`) a descriptor that can be neither read nor written.
// Else the next file that is opened takes the number, and is overwritten with what is meant for them.
void occupy_standard_descriptors();

// Writes all of `text` to standard output, or throws InputError with the system's reason. A terminal gets it as
// printable(), since texts of files are in it; a pipe or a file gets it as it is.
void print(std::string_view text);

// The same for a full disk that only shows when a file is closed.
void check_standard_output();

// How many columns the terminal has that standard output is: COLUMNS, where that is set, or what the terminal says.
// Nothing where it is a pipe or a file.
[[nodiscard]] std::optional<std::size_t> terminal_width();

}  // namespace dculab::present
