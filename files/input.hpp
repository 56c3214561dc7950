// Opens and reads files that somebody else made: never waits for one, and never reads more than asked for.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "files/descriptor.hpp"

namespace dculab::files {

inline constexpr std::size_t kLargestText = std::size_t{1} << 30U;  // bytes of a text that a command reads whole

// Somebody asks for a file that is reserved. Whoever goes on without a bad file must not go on after this one.
class ReservedFileError : public InputError {
 public:
  using InputError::InputError;
};

// Keeps the file that `path` names now for an output: from now on, whatever is opened here to be read is not this file,
// else ReservedFileError says that `by`, an option, writes it. Nothing happens where there is no regular file. To be
// called before other threads read.
void reserve_for_output(const std::string& path, const std::string& by);

// Throws InputError when `path` is missing, cannot be opened, or is no regular file: a FIFO without a writer would stop
// the program for ever, and a device never ends.
[[nodiscard]] Descriptor open_regular(const std::string& path);

// Throws InputError when `descriptor` is no regular file; `path` is for the message.
void require_regular(int descriptor, const std::string& path);

// What the shell hands over may be a pipe: /dev/stdin, and the /dev/fd/63 of <(command).
inline constexpr std::string_view kStandardInput = "/dev/stdin";
[[nodiscard]] bool is_handed_over(std::string_view path);

// The whole file, or what the shell hands over; of a pipe the same text each time. Throws InputError as open_regular,
// and when it is larger than `limit` bytes.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t limit);

// The same in pieces, for a file that is not to be held: each call gives the next piece, valid until the call after it,
// and an empty one at the end.
[[nodiscard]] std::function<std::string_view()> read_text_pieces(const std::string& path, std::size_t limit);

}  // namespace dculab::files
