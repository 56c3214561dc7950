// An unfinished file or folder beside the one that it is to become, under a name that was never used before.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "files/descriptor.hpp"
#include "files/interruption.hpp"

namespace dculab::files {

enum class TemporaryKind : std::uint8_t { file, folder };

// Called TARGET.part-PROCESS-MACHINE-TIMERANDOM. It is removed by its destructor, when the program is interrupted, and,
// where the program had no time for either, by the next that writes the same target.
class Temporary {
 public:
  // Throws std::system_error.
  Temporary(std::string target, TemporaryKind kind);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return descriptor_.number(); }  // a file's is for writing

  // The temporary file or folder of another program that was at this target first; empty where there is none.
  [[nodiscard]] std::string earlier() const;

  // Puts it in the target's place, on the disk before and after: a loss of power leaves the old content or the new.
  // Throws std::system_error.
  void take_place();

 private:
  void make();
  void copy_rights() const;  // of the file whose place it is to take
  void remove() const noexcept;

  std::string target_, path_;
  TemporaryKind kind_;
  Descriptor descriptor_;
  std::optional<Undo> undo_;  // empty: it took its place
};

// On the disk, also if the power fails now: a file's content (and length), a folder's names. Throws std::system_error.
void sync_data(int descriptor);
void sync_folder(const std::string& path);

}  // namespace dculab::files
