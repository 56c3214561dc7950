#include "config/node.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"

namespace dculab::config {

const Node* Node::find(std::string_view wanted_key) const {
  if (kind != NodeKind::map) return nullptr;
  for (const Node& child : children)
    if (child.key == wanted_key) return &child;
  return nullptr;
}

Node* Node::find(std::string_view wanted_key) {
  return const_cast<Node*>(static_cast<const Node&>(*this).find(wanted_key));
}

std::string read_text_file(const std::string& path, std::size_t limit) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError(path, "is a folder, not a file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError(path, std::string("cannot be opened (") + std::strerror(errno) + ")");
  std::string text;
  std::string chunk(1 << 16, '\0');
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || stream.gcount() > 0) {
    text.append(chunk, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limit)
      throw InputError(path, "is larger than " + std::to_string(limit) + " bytes; is it the right file?");
  }
  if (stream.bad()) throw InputError(path, "cannot be read to its end");
  return text;
}

}  // namespace dculab::config
