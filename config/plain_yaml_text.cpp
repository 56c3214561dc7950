// config's reader of YAML in a build without yaml-cpp.
#include "config/yaml_text.hpp"

#include "config/plain_yaml.hpp"
#include "files/input.hpp"

namespace dculab::config {

Node parse_yaml(const std::string& file, const std::string& text) { return parse_plain_yaml(file, text); }

Node read_yaml_file(const std::string& path) {
  constexpr std::size_t kLargest = 1 << 20;
  return parse_yaml(path, files::read_text(path, kLargest));
}

}  // namespace dculab::config
