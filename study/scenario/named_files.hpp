// The files that a question reads and its answer writes. No file may be both, and no two answers may go to one file.
// What scenarios and other files name is refused when it is opened (files/input.hpp), or found (locate.hpp) where it is
// a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dculab::study {

enum class FileUse : std::uint8_t { read, written };

struct NamedFile {
  std::string option;  // that named it, for messages
  std::filesystem::path path;
  FileUse use;
};

// Keeps a file, or a model folder that is read, for this run of the program. Returns what is wrong with it: an earlier
// file that it is as well; "" when nothing is. To be called before other threads read.
[[nodiscard]] std::string add_named_file(const NamedFile& named);

// The option that writes to standard output; "" where none does.
[[nodiscard]] std::string option_to_standard_output();

// Throws files::ReservedFileError when a named file that is written is one of this model's.
void require_unwritten(const std::filesystem::path& model_folder);

}  // namespace dculab::study
