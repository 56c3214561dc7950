#include "study/scenario/axis_title.hpp"

#include <map>
#include <string_view>

namespace dculab::study {

std::string axis_title(const std::string& key) {
  static const std::map<std::string, std::string> titles{
      {"model.num_key_value_heads", "KV heads"},
      {"kv_cache.block_size", "block"},
      {"kv_cache.dtype", "KV dtype"},
      {"workload.context_tokens", "context"},
      {"engine.speculative_config.num_speculative_tokens", "drafted"},
      {"engine.speculative_config.speculative_token_tree", "tree"},
      {"engine.speculative_config.acceptance", "acceptance"},
      {"engine.speculative_config.model", "draft model"},
      {"engine.speculative_config.method", "method"}};
  const auto title = titles.find(key);
  if (title != titles.end()) return title->second;
  constexpr std::string_view kName = ".name";  // of a model, a machine or a stack
  return key.ends_with(kName) ? key.substr(0, key.size() - kName.size()) : key.substr(key.find('.') + 1);
}

}  // namespace dculab::study
