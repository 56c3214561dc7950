// A new model folder, whole or not at all, and what it takes over from the model it was made from.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace dculab::engine {

// Throws InputError when `folder` cannot be made: it exists and is not empty, or its parent is not a folder one can
// write to. For checks before the work.
void require_new_folder(const std::filesystem::path& folder);

// Makes `folder` with what `fill` puts into it: a temporary folder beside it, which is then renamed. Nothing is left
// when `fill` throws. Throws InputError.
void make_folder(const std::filesystem::path& folder, const std::function<void(const std::filesystem::path&)>& fill);

// Tokenizer and generation configuration.
void copy_companion_files(const std::filesystem::path& source, const std::filesystem::path& folder);

// Throws InputError.
void write_text(const std::filesystem::path& file, const std::string& text);

}  // namespace dculab::engine
