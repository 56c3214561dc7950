// config's reader of YAML in a build without yaml-cpp: who hands a file over has made JSON of it, whose scalars are
// texts (report/yaml_as_json.mjs).
#include "config/yaml_text.hpp"
#include "files/input.hpp"

namespace dculab::config {

Node parse_yaml(const std::string& file, const std::string& text) { return as_words(parse_json(file, 1, text)); }

Node read_yaml_file(const std::string& path) {
  constexpr std::size_t kLargest = 1 << 20;
  return parse_yaml(path, files::read_text(path, kLargest));
}

}  // namespace dculab::config
