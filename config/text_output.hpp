// Writes files whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dculab::config {

// Writes `path`.part and renames it: a reader sees the old content or the new, and a failure leaves nothing behind. A
// program that is killed leaves its .part, which the next one begins anew; two at a time take turns. Devices and pipes
// are written directly, a link stays and the file that it names is replaced. Throws InputError.
void write_file_atomically(const std::string& path, std::string_view text);

enum class WhenTaken : std::uint8_t { refuse, wait };  // while another program writes the same file

// The same for a file that is too large to be held: its pieces go into `path`.part, which takes the place of `path`
// in keep(); without that it is removed.
class GrowingFile {
 public:
  explicit GrowingFile(const std::string& path, WhenTaken when_taken = WhenTaken::refuse);  // throws InputError
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void write(std::string_view text);
  void keep();

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void close_and_refuse(const std::string& why);  // for the constructor, which has no destructor behind it
  bool lock(WhenTaken when_taken);  // false where the file system has no locks: nobody is told apart

  std::string named_, path_, written_;
  int descriptor_ = -1;
};

}  // namespace dculab::config
