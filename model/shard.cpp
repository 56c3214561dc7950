#include "model/shard.hpp"

#include <algorithm>

namespace dculab {

namespace {

// A matrix whose rows the devices share has whole groups on each of them.
void require_whole_groups(std::vector<std::string>& found, const char* matrix, int in_features, int group,
                          int devices) {
  if (group <= 0 || in_features % devices != 0 || in_features / devices % group == 0) return;
  found.push_back(std::string(matrix) + " has " + std::to_string(in_features / devices) + " in-features on each of " +
                  std::to_string(devices) + " devices, no whole groups of " + std::to_string(group) + " weights");
}

}  // namespace

std::vector<std::string> shard_problems(const ModelShape& model, WeightFormat layers, int devices) {
  std::vector<std::string> found;
  const std::string over = " over " + std::to_string(devices) + " devices";
  if (model.num_attention_heads % devices != 0)
    found.push_back(std::to_string(model.num_attention_heads) + " query heads do not divide" + over);
  if (model.num_key_value_heads % devices != 0 && devices % model.num_key_value_heads != 0)
    found.push_back(std::to_string(model.num_key_value_heads) + " KV heads do not divide" + over);
  if (model.intermediate_size % devices != 0)
    found.push_back("an MLP of width " + std::to_string(model.intermediate_size) + " does not divide" + over);
  require_whole_groups(found, "o_proj", model.query_width(), layers.group_size, devices);
  require_whole_groups(found, "down_proj", model.intermediate_size, layers.group_size, devices);
  return found;
}

ModelShape shard(const ModelShape& model, int devices) {
  ModelShape part = model;
  part.tensor_parallel_size = devices;
  part.num_attention_heads /= devices;
  part.num_key_value_heads = std::max(1, model.num_key_value_heads / devices);
  part.intermediate_size /= devices;
  part.vocab_size = (model.vocab_size + devices - 1) / devices;
  return part;
}

}  // namespace dculab
