#include "config/node.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/error.hpp"

namespace dculab::config {

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
