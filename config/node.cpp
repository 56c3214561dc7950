#include "config/node.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/error.hpp"
#include "fields/utf8.hpp"

namespace dculab::config {

void require_utf8(const std::string& file, std::string_view text) {
  const std::size_t valid = valid_prefix(text);
  if (valid == text.size()) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
  throw InputError(
      file, static_cast<int>(line),
      "is not UTF-8 (byte " + std::to_string(static_cast<unsigned char>(text[valid])) + "); save it as UTF-8");
}

NextPiece read_text_pieces(const std::string& path, std::size_t limit) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError(path, "is a folder, not a file");
  const auto stream = std::make_shared<std::ifstream>(path, std::ios::binary);
  if (!*stream) throw InputError(path, std::string("cannot be opened (") + std::strerror(errno) + ")");
  return [path, limit, stream, read = std::size_t{0}, piece = std::string(1 << 16, '\0')]() mutable {
    stream->read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto size = static_cast<std::size_t>(stream->gcount());
    read += size;
    if (read > limit)
      throw InputError(path, "is larger than " + std::to_string(limit) + " bytes; is it the right file?");
    if (stream->bad()) throw InputError(path, "cannot be read to its end");
    return std::string_view(piece).substr(0, size);
  };
}

std::string read_text_file(const std::string& path, std::size_t limit) {
  const NextPiece next_piece = read_text_pieces(path, limit);
  std::string text;
  for (std::string_view piece = next_piece(); !piece.empty(); piece = next_piece()) text += piece;
  return text;
}

}  // namespace dculab::config
