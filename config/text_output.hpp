// Writes files whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace dculab::config {

// Writes a temporary file beside `path` and renames it: a reader sees the old content or the new, and a failure leaves
// nothing behind. Devices and pipes are written directly. Throws InputError.
void write_file_atomically(const std::string& path, std::string_view text);

// The same for a file that is too large to be held: its pieces go into `path`.part, which takes the place of `path`
// when all are there. Without keep() it is removed; a program that is killed leaves it behind, for the next one to
// begin anew. Refused while another program writes it.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path);  // throws InputError
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void write(std::string_view text);
  void keep();

 private:
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_, written_;
  int descriptor_ = -1;
};

}  // namespace dculab::config
