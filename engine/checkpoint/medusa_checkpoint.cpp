#include "engine/checkpoint/medusa_checkpoint.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/checkpoint/finite_weights.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/memory/anonymous_memory.hpp"
#include "fields/json_fields.hpp"
#include "fields/printable_text.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

constexpr int kMostHeads = kMostDraftTokens, kMostHeadLayers = 16;
constexpr int kDefaultHeads = 5;  // vLLM's

struct MedusaConfig {
  int num_heads = 0, num_hidden_layers = 0, num_rows = 0;
  bool has_bias = false, shares_head = false, has_token_map = false;
};

void require_size(const JsonFields& fields, const char* key, int expected) {
  if (const int found = fields.integer(key); found != expected)
    fields.refuse(key, "is " + std::to_string(found) + ", but the model has " + std::to_string(expected) +
                           ": these heads were trained for another model");
}

int count_of(const JsonFields& fields, const char* key, int fallback, int most) {
  const int count = fields.integer(key, fallback);
  if (count < 1 || count > most) fields.refuse(key, "must be from 1 to " + std::to_string(most));
  return count;
}

MedusaConfig read_medusa_config(const JsonFields& fields, const ModelShape& model) {
  if (const std::string type = fields.text("model_type", ""); type != "medusa")
    fields.refuse("model_type", "must be 'medusa', not " + in_quotes(type));
  require_size(fields, "hidden_size", model.hidden_size);
  require_size(fields, "vocab_size", model.vocab_size);
  MedusaConfig config{.num_heads = count_of(fields, "num_heads", kDefaultHeads, kMostHeads),
                      .num_hidden_layers = count_of(fields, "num_hidden_layers", 1, kMostHeadLayers),
                      .num_rows = count_of(fields, "truncated_vocab_size", model.vocab_size, model.vocab_size),
                      .has_bias = fields.flag("medusa_fc_bias", false),
                      .shares_head = fields.flag("original_lm_head", false)};
  config.has_token_map = config.num_rows < model.vocab_size;
  return config;
}

// Finds tensors by vLLM's names, which may begin with "medusa_heads.".
class MedusaReader {
 public:
  explicit MedusaReader(const std::filesystem::path& folder)
      : checkpoint_(std::make_shared<const Checkpoint>(folder)) {}

  [[nodiscard]] bool has(const std::string& name) const { return find(name).tensor != nullptr; }
  [[nodiscard]] const std::shared_ptr<const Checkpoint>& checkpoint() const { return checkpoint_; }

  [[nodiscard]] const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const auto [tensor, file] = find(name);
    if (tensor == nullptr) throw InputError(file, "tensor '" + name + "' is missing; config.json asks for it");
    if (tensor->shape != shape)
      throw InputError(file, "tensor '" + name + "' has shape " + to_string(tensor->shape) +
                                 ", but config.json makes it " + to_string(shape));
    return *tensor;
  }

  // Where it lies in the file: not aligned to its values.
  [[nodiscard]] kernels::WeightView weights(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const StoredTensor& stored = tensor(name, shape);
    const auto dtype = parse_dtype(stored.dtype);
    if (!dtype || (*dtype != Dtype::f32 && *dtype != Dtype::f16 && *dtype != Dtype::bf16))
      refuse(name, "has dtype " + shortened(stored.dtype) + ", which is not supported (F32, F16, BF16)");
    if (!all_finite(stored.bytes, *dtype)) refuse(name, "has a weight that is NaN or infinite; download it again");
    return {stored.bytes.data(), *dtype, static_cast<int>(shape[0])};
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
    throw InputError(find(name).file, "tensor '" + name + "' " + why);
  }

 private:
  [[nodiscard]] Checkpoint::Entry find(const std::string& name) const {
    const Checkpoint::Entry entry = checkpoint_->find(name);
    const Checkpoint::Entry prefixed = checkpoint_->find("medusa_heads." + name);
    return entry.tensor == nullptr && prefixed.tensor != nullptr ? prefixed : entry;
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
};

std::vector<TokenId> read_token_map(const MedusaReader& reader, int rows, int vocab_size) {
  const StoredTensor& stored = reader.tensor("token_map", {rows});
  if (stored.dtype != "I64") reader.refuse("token_map", "has dtype " + shortened(stored.dtype) + ", not I64");
  std::vector<std::int64_t> ids(static_cast<std::size_t>(rows));
  std::memcpy(ids.data(), stored.bytes.data(), stored.bytes.size());
  std::vector<TokenId> tokens;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= vocab_size)
      reader.refuse("token_map",
                    "has token " + std::to_string(id) + ", outside the vocabulary of " + std::to_string(vocab_size));
    tokens.push_back(static_cast<TokenId>(id));
  }
  return tokens;
}

// All heads' views, into the file and in the order of a pass; biases in the stored dtype.
std::vector<MedusaHead> find_heads(const MedusaReader& reader, const MedusaConfig& config, int hidden) {
  std::vector<MedusaHead> heads(static_cast<std::size_t>(config.num_heads));
  for (std::size_t i = 0; i < heads.size(); ++i) {
    for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
      const std::string name = "blocks." + std::to_string(i) + ".layers." + std::to_string(layer) + ".";
      heads[i].layers.push_back(reader.weights(name + "weight", {hidden, hidden}));
      heads[i].biases.push_back(config.has_bias ? reader.weights(name + "bias", {hidden}) : kernels::WeightView{});
    }
    if (!config.shares_head)
      heads[i].lm_head = reader.weights("lm_heads." + std::to_string(i) + ".weight", {config.num_rows, hidden});
  }
  return heads;
}

// The head that all share: of the folder, else the model's own.
kernels::WeightView shared_head(const MedusaReader& reader, const MedusaConfig& config, const ModelWeights& model,
                                const std::string& folder) {
  for (const char* name : {"lm_heads.0.weight", "lm_head.weight"})
    if (reader.has(name)) return reader.weights(name, {config.num_rows, model.shape.hidden_size});
  const kernels::WeightView& own = model.outer[WeightSlot::lm_head].weights[0];
  const bool is_plain = own.dtype == Dtype::f32 || own.dtype == Dtype::f16 || own.dtype == Dtype::bf16;
  if (!is_plain || config.has_token_map)
    throw InputError(folder, "the heads share the model's own lm_head, which is " +
                                 std::string(is_plain ? "of all tokens, not of truncated_vocab_size" : "quantized") +
                                 "; store it as 'lm_heads.0.weight'");
  return own;
}

// Copies what views show to memory where kernels can read it; biases become F32.
class MedusaKeeper {
 public:
  explicit MedusaKeeper(std::size_t bytes)
      : memory_(std::make_shared<AnonymousMemory>(bytes)), next_(memory_->data()) {}

  void keep(kernels::WeightView& matrix, int columns) {
    const std::size_t bytes = value_count(matrix, columns) * static_cast<std::size_t>(bits(matrix.dtype)) / 8;
    std::memcpy(next_, matrix.data, bytes);
    matrix.data = std::exchange(next_, next_ + rounded_to_line(bytes));
  }

  void keep_widened(kernels::WeightView& bias) {
    if (bias.data == nullptr) return;
    const std::span values(reinterpret_cast<float*>(next_), value_count(bias, 1));
    widen(bias.data, bias.dtype, values);
    next_ += rounded_to_line(values.size_bytes());
    bias = {values.data(), Dtype::f32, bias.rows};
  }

  [[nodiscard]] std::shared_ptr<const void> memory() const { return memory_; }

 private:
  static std::size_t value_count(const kernels::WeightView& view, int columns) {
    return static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(columns);
  }

  std::shared_ptr<AnonymousMemory> memory_;
  std::byte* next_;
};

// More than what is kept: every value in F32.
std::size_t most_kept_bytes(const MedusaConfig& config, std::size_t hidden) {
  const std::size_t layer = rounded_to_line(hidden * hidden * sizeof(float)) + rounded_to_line(hidden * sizeof(float));
  const std::size_t head = rounded_to_line(static_cast<std::size_t>(config.num_rows) * hidden * sizeof(float));
  return static_cast<std::size_t>(config.num_heads) *
         (static_cast<std::size_t>(config.num_hidden_layers) * layer + head);
}

DraftShape read_tree(const JsonFields& fields) {
  const int num_heads = count_of(fields, "num_heads", kDefaultHeads, kMostHeads);
  if (!fields.has("speculative_token_tree")) return chain_shape(num_heads);
  constexpr const char* kTree = "speculative_token_tree";
  DraftShape shape;
  try {
    shape = parse_draft_shape(fields.text(kTree, ""));
  } catch (const InputError& error) {
    throw InputError(fields.file(), fields.line_of(kTree).value_or(1), error.what());
  }
  if (shape.depth() > num_heads)
    fields.refuse(kTree, "must have at most " + std::to_string(num_heads) + " levels, as there are heads");
  return shape;
}

}  // namespace

DraftShape read_medusa_shape(const std::filesystem::path& folder) {
  const std::string file = (folder / "config.json").string();
  return read_tree(JsonFields(file, read_model_text(file)));
}

MedusaWeights load_medusa_weights(const std::filesystem::path& folder, const ModelWeights& model) {
  const std::string file = (folder / "config.json").string();
  const JsonFields fields(file, read_model_text(file));
  const MedusaConfig config = read_medusa_config(fields, model.shape);
  const MedusaReader reader(folder);
  const int hidden = model.shape.hidden_size;
  MedusaWeights weights;
  weights.hidden_size = hidden;
  weights.heads = find_heads(reader, config, hidden);
  if (config.has_token_map) weights.token_map = read_token_map(reader, config.num_rows, model.shape.vocab_size);
  weights.shape = read_tree(fields);
  const std::size_t most = most_kept_bytes(config, static_cast<std::size_t>(hidden));
  require_memory("the Medusa heads", Bytes(static_cast<double>(most)), "use fewer or smaller heads");
  MedusaKeeper keeper(most);
  for (MedusaHead& head : weights.heads) {
    for (kernels::WeightView& layer : head.layers) keeper.keep(layer, hidden);
    for (kernels::WeightView& bias : head.biases) keeper.keep_widened(bias);
    if (!config.shares_head) keeper.keep(head.lm_head, hidden);
  }
  if (config.shares_head) {
    kernels::WeightView shared = shared_head(reader, config, model, folder.string());
    if (shared.data != model.outer[WeightSlot::lm_head].weights[0].data) keeper.keep(shared, hidden);
    for (MedusaHead& head : weights.heads) head.lm_head = shared;
  }
  weights.memory = keeper.memory();
  return weights;
}

}  // namespace dculab::engine
