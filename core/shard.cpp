#include "core/shard.hpp"

#include <algorithm>

namespace dculab {

std::vector<std::string> shard_problems(const ModelShape& model, int devices) {
  std::vector<std::string> found;
  const std::string over = " over " + std::to_string(devices) + " devices";
  if (model.num_attention_heads % devices != 0)
    found.push_back(std::to_string(model.num_attention_heads) + " query heads do not divide" + over);
  if (model.num_key_value_heads % devices != 0 && devices % model.num_key_value_heads != 0)
    found.push_back(std::to_string(model.num_key_value_heads) + " KV heads do not divide" + over);
  if (model.intermediate_size % devices != 0)
    found.push_back("an MLP of width " + std::to_string(model.intermediate_size) + " does not divide" + over);
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
