// Writes files and folders whole or not at all.
//
// What is written lies beside its place until it is complete (files/temporary.hpp) and then takes it in one step: a
// reader sees the old content or the new, also after a loss of power, and a failure or a signal leaves nothing behind.
// A new file has the rights of the old one. A link stays, and the file that it names is written, whether it is there or
// not. Devices, pipes and what the shell handed over (/dev/stdout, /dev/fd/3) are written directly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "files/temporary.hpp"

namespace dculab::files {

inline constexpr std::string_view kStandardOutput = "/dev/stdout";

// Of several programs that write the same file at a time each writes it whole; the last one's stays. Throws InputError.
void write_file_atomically(const std::string& path, std::string_view text);

enum class WhenTaken : std::uint8_t { refuse, replace };  // while another program writes the same file

// The same for a file that is too large to be held: its pieces become `path` in keep(), and go without that.
class GrowingFile {
 public:
  explicit GrowingFile(const std::string& path, WhenTaken when_taken = WhenTaken::refuse);  // throws InputError

  void write(std::string_view text);
  void keep();

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void open_special(const std::string& path);

  std::string named_;
  std::optional<Temporary> temporary_;
  Descriptor special_;  // in its place
};

// A folder that becomes `path` in keep(), and goes without that; `path` is not there, or empty.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path);  // throws InputError, also where another program is making it

  [[nodiscard]] const std::string& path() const { return temporary_->path(); }  // to be filled
  void keep();

 private:
  std::string named_;
  std::optional<Temporary> temporary_;
};

// The file that `path` names through links, whether it is there or not. Throws InputError where they do not end, or one
// is another user's in a folder that everybody writes to; std::filesystem::filesystem_error where they cannot be read.
[[nodiscard]] std::string behind_links(const std::string& path);

// Everything, also where the descriptor does not block. Throws std::system_error.
void write_all(int descriptor, std::string_view bytes);

}  // namespace dculab::files
