// A new model folder, whole or not at all, and what it takes over from the model it was made from.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace dculab::engine {

// Throws InputError when `folder` cannot be made: it exists and is not empty, or its parent is not a folder one can
// write to. For checks before the work.
void require_new_folder(const std::filesystem::path& folder);

// Makes `folder` with what `fill` puts into the folder that it gets: whole or not at all (files/output.hpp). Throws
// InputError.
void make_folder(const std::filesystem::path& folder, const std::function<void(const std::filesystem::path&)>& fill);

// Names of the files with tokenizer and generation configuration that a new model takes over: regular files of
// `source`, or of the same repository in a Hugging Face Hub cache, where they are links from snapshots/ into blobs/.
// Throws InputError for a link to anywhere else, since what it leads to would be given away with the model, for
// anything that is no regular file, and for JSON that cannot be parsed.
[[nodiscard]] std::vector<std::string> companion_files(const std::filesystem::path& source);

// Copies them, each whole and on the disk. Throws InputError.
void copy_companion_files(const std::filesystem::path& source, const std::filesystem::path& folder);

}  // namespace dculab::engine
