#include "cli/output/axis_title.hpp"

#include <map>

namespace dculab::cli {

std::string axis_title(const std::string& key) {
  static const std::map<std::string, std::string> titles{{"model.num_key_value_heads", "KV heads"},
                                                         {"kv_cache.block_size", "block"},
                                                         {"kv_cache.dtype", "KV dtype"},
                                                         {"workload.context_tokens", "context"}};
  const auto title = titles.find(key);
  return title != titles.end() ? title->second : key.substr(key.find('.') + 1);
}

}  // namespace dculab::cli
