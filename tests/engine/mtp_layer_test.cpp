// DeepSeek's layer of multi-token prediction against the reference of scripts/golden/make_mtp_goldens.py.
#include <algorithm>
#include <fstream>
#include <numeric>

#include "core/error.hpp"
#include "engine/checkpoint/mtp_checkpoint.hpp"
#include "engine/executors/mtp_layer.hpp"
#include "model/folder/model_files.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

const std::filesystem::path kMtpFolder = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/mtp";
constexpr double kMtpTolerance = 2e-4;  // of the largest value: sums of at most 96 products in F32, through two layers

template <typename Value>
std::vector<Value> expected_values(const std::string& name) {
  const MappedFile file((kMtpFolder / "expected.safetensors").string());
  const TensorTable table = read_tensor_table(file.bytes(), "expected.safetensors");
  const std::span<const std::byte> bytes = table.at(name).bytes;
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void check_near(std::span<const float> found, std::span<const float> expected) {
  REQUIRE(found.size() == expected.size());
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  CHECK(difference <= kMtpTolerance * largest);
}

// Passes of one sequence, with the layer's K and V in blocks that lie in falling order.
class Passes {
 public:
  Passes(MtpLayer& layer, int block_size) : layer_(layer) {
    options_.block_size = block_size;
    options_.kv_cache_dtype = Dtype::f32;
    options_.weights = layer.shape().layer_format();
    options_.activation_dtype = Dtype::f32;
  }

  void run(std::span<const TokenId> tokens, std::span<const float> hidden) {
    const int count = static_cast<int>(tokens.size());
    Batch batch;
    batch.sequences.push_back({.phase = count > 1 ? Phase::prefill : Phase::decode,
                               .num_computed_tokens = computed_,
                               .num_new_tokens = count,
                               .num_logits = count});
    batch.token_ids.assign(tokens.begin(), tokens.end());
    computed_ += count;
    std::vector<BlockId> blocks(static_cast<std::size_t>((computed_ + options_.block_size - 1) / options_.block_size));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = 199 - static_cast<BlockId>(i);
    batch.block_tables.push_back(blocks);
    layer_.run(plan_step(layer_.shape(), options_, std::move(batch)), hidden);
  }

 private:
  MtpLayer& layer_;
  EngineOptions options_;
  int computed_ = 0;
};

}  // namespace

TEST_CASE("the MTP layer computes what DeepSeek's does", "[mtp]") {
  const ModelWeights weights = load_weights(kMtpFolder);
  for (const int block_size : {1, 16, 64})
    for (const int prompt : {0, 1, 2}) {
      INFO("blocks of " << block_size << ", prompt " << prompt);
      const std::string of = "." + std::to_string(prompt);
      std::vector<TokenId> tokens = expected_values<TokenId>("prompt" + of);
      Stepper model(weights, {.block_size = block_size});
      model.executor().keep_all_hidden();
      model.step({{0, Phase::prefill, tokens}});
      const std::span<const float> hidden = model.executor().all_hidden();
      tokens.push_back(expected_values<TokenId>("next" + of).front());

      MtpLayer layer(load_mtp_weights(kMtpFolder, WeightMemory::huge_pages, weights),
                     {.num_blocks = 200, .block_size = block_size, .dtype = Dtype::f32},
                     std::make_shared<kernels::cpu::ThreadPool>(2));
      Passes passes(layer, block_size);
      const std::vector<float> logits = expected_values<float>("logits" + of),
                               own = expected_values<float>("hidden" + of);
      const std::size_t vocab = 96, columns = 32, count = tokens.size() - 1, chunk = 2 * count / 3;
      for (const auto& [first, last] : {std::pair{std::size_t{0}, chunk}, {chunk, count}}) {
        passes.run(std::span(tokens).subspan(first + 1, last - first),
                   hidden.subspan(first * columns, (last - first) * columns));
        for (std::size_t i = first; i < last; ++i) {
          check_near(layer.logits(static_cast<int>(i - first)), std::span(logits).subspan(i * vocab, vocab));
          check_near(layer.hidden(static_cast<int>(i - first)), std::span(own).subspan(i * columns, columns));
        }
      }
      int last = static_cast<int>(count - chunk) - 1;
      for (const TokenId draft : expected_values<TokenId>("drafts" + of)) {
        const std::span<const float> row = layer.logits(last);
        const TokenId best = static_cast<TokenId>(std::ranges::max_element(row) - row.begin());
        CHECK(best == draft);
        const std::vector<float> before(layer.hidden(last).begin(), layer.hidden(last).end());
        passes.run(std::span(&best, 1), before);
        last = 0;
      }
    }
}

TEST_CASE("the hidden states of all tokens are those that the head reads", "[mtp]") {
  Stepper model(load_weights(kMtpFolder));
  model.executor().keep_all_hidden();
  model.step({{0, Phase::prefill, {5, 6, 7}}, {1, Phase::prefill, {8, 9}}});
  const std::span<const float> all = model.executor().all_hidden();
  REQUIRE(all.size() == std::size_t{5} * 32);
  std::vector<float> last(2 * 32);
  model.executor().copy_last_hidden(std::vector<int>{0, 1}, last);
  CHECK(std::ranges::equal(all.subspan(2 * 32, 32), std::span(last).first(32)));
  CHECK(std::ranges::equal(all.subspan(4 * 32, 32), std::span(last).last(32)));
}

TEST_CASE("a folder without an MTP layer is refused", "[mtp]") {
  const ModelWeights weights = load_weights(kFamilyFolder / "deepseek_v3");
  CHECK_THROWS_WITH(load_mtp_weights(kFamilyFolder / "deepseek_v3", WeightMemory::huge_pages, weights),
                    ContainsSubstring("tensor 'model.layers.2.input_layernorm.weight' is missing"));
  const ModelWeights mha = load_weights(kGoldenFolder / "mha");
  CHECK_THROWS_WITH(load_mtp_weights(kGoldenFolder / "mha", WeightMemory::huge_pages, mha),
                    ContainsSubstring("the checkpoint has no layer that predicts further tokens"));
}

}  // namespace dculab::engine
