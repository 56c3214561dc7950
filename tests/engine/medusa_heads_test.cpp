// Medusa heads: read from vLLM's format, run on each device, and the trees that their guesses make.
#include <functional>
#include <random>

#include "core/error.hpp"
#include "engine/checkpoint/medusa_checkpoint.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/executors/cpu_draft_heads.hpp"
#include "engine/speculation/medusa.hpp"
#include "tests/engine/support/medusa_folder.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

ModelWeights small_weights(Dtype dtype = Dtype::f32) { return random_weights(small_model(2, dtype), 3); }

std::vector<float> random_rows(int rows, int columns) {
  std::mt19937 random(5);
  std::normal_distribution<float> draw;
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (float& each : values) each = draw(random);
  return values;
}

void check_guesses(DraftHeads& heads, MedusaFolder& folder, const MedusaSizes& sizes, int rows, int width) {
  const std::vector<float> hidden = random_rows(rows, sizes.hidden_size);
  const std::span<const TokenId> found = heads.guess(hidden, width);
  REQUIRE(found.size() == static_cast<std::size_t>(rows * sizes.num_heads * width));
  std::size_t next = 0;
  for (int row = 0; row < rows; ++row) {
    const auto columns = static_cast<std::size_t>(sizes.hidden_size);
    const auto expected =
        folder.guesses(std::span(hidden).subspan(static_cast<std::size_t>(row) * columns, columns), width);
    for (const std::vector<TokenId>& of_head : expected)
      for (const TokenId token : of_head) CHECK(found[next++] == token);
  }
}

const std::vector<MedusaSizes> kSizes{
    {},
    {.num_hidden_layers = 2, .has_bias = true, .dtype = Dtype::f16},
    {.num_heads = 5, .truncated_vocab_size = 40, .dtype = Dtype::bf16, .prefix = "medusa_heads."},
    {.has_bias = true, .shares_head = true},
};

std::string message_of(const MedusaFolder& folder, const ModelWeights& model) {
  try {
    static_cast<void>(load_medusa_weights(folder.path(), model));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("Medusa heads guess what their weights say", "[medusa]") {
  const ModelWeights model = small_weights();
  kernels::cpu::ThreadPool threads(2);
  for (const MedusaSizes& sizes : kSizes) {
    MedusaFolder folder(sizes);
    CpuDraftHeads heads(load_medusa_weights(folder.path(), model), threads);
    REQUIRE(heads.num_heads() == sizes.num_heads);
    REQUIRE(heads.most_guesses() == folder.rows());
    for (const int rows : {1, 3, 40}) check_guesses(heads, folder, sizes, rows, 7);
    check_guesses(heads, folder, sizes, 1, folder.rows());
  }
}

TEST_CASE("Medusa heads on the GPU guess the same", "[medusa][gpu]") {
  const ModelWeights model = small_weights();
  for (const MedusaSizes& sizes : kSizes) {
    MedusaFolder folder(sizes);
    Stepper stepper(host_gpu(), model, {.kv_dtype = Dtype::f16});
    const auto heads = stepper.executor().make_draft_heads(load_medusa_weights(folder.path(), model));
    REQUIRE(heads->num_heads() == sizes.num_heads);
    for (const int rows : {2, 35}) check_guesses(*heads, folder, sizes, rows, 4);  // 35: in two parts
  }
}

TEST_CASE("heads that share the model's own head need none in their file", "[medusa]") {
  const ModelWeights model = small_weights();
  const MedusaSizes sizes{.shares_head = true};
  MedusaFolder folder(sizes);
  const kernels::WeightView& own = model.outer[WeightSlot::lm_head].weights[0];
  widen(own.data, own.dtype, folder.tensor("lm_heads.0.weight").values);
  const MedusaFolder::Tensor head = folder.tensor("lm_heads.0.weight");
  folder.remove("lm_heads.0.weight");
  folder.write_weights();
  const MedusaWeights weights = load_medusa_weights(folder.path(), model);
  CHECK(weights.heads.back().lm_head.data == own.data);
  kernels::cpu::ThreadPool threads(1);
  CpuDraftHeads heads(weights, threads);
  MedusaFolder whole(sizes);
  whole.tensor("lm_heads.0.weight") = head;
  check_guesses(heads, whole, sizes, 2, 5);
}

TEST_CASE("the largest values of a row, of equal ones the first", "[medusa]") {
  const std::vector<float> values{1, 4, 2, 4, -3, 2};
  std::vector<TokenId> found(6);
  for (std::size_t wanted = 1; wanted <= 6; ++wanted) {
    found.assign(wanted, -1);
    largest_indices(values, found);
    const std::vector<TokenId> expected{1, 3, 2, 5, 0, 4};
    CHECK(found == std::vector(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(wanted)));
  }
}

TEST_CASE("bad Medusa folders are refused with one clear message", "[medusa]") {
  const ModelWeights model = small_weights();
  const auto refused = [&](const MedusaSizes& sizes, const std::function<void(MedusaFolder&)>& damage,
                           const std::string& because) {
    MedusaFolder folder(sizes);
    damage(folder);
    CHECK_THAT(message_of(folder, model), ContainsSubstring(because));
  };
  const auto config = [&](const std::string& text, const std::string& because) {
    refused(
        {}, [&](const MedusaFolder& folder) { std::ofstream(folder.path() / "config.json") << text; }, because);
  };
  const std::string name = "blocks.1.layers.0.weight";
  config("{}", "'model_type' must be 'medusa', not ''");
  config(R"({"model_type": "eagle"})", "must be 'medusa', not 'eagle'");
  config(R"({"model_type": "medusa", "hidden_size": 63, "vocab_size": 96})",
         "'hidden_size' is 63, but the model has 64: these heads were trained for another model");
  config(R"({"model_type": "medusa", "hidden_size": 64, "vocab_size": 95})",
         "'vocab_size' is 95, but the model has 96");
  config(R"({"model_type": "medusa", "hidden_size": 64, "vocab_size": 96, "num_heads": 64})", "must be from 1 to 63");
  config(R"({"model_type": "medusa", "hidden_size": 64, "vocab_size": 96, "num_heads": 4})",
         "tensor 'blocks.3.layers.0.weight' is missing");
  refused(
      {}, [](const MedusaFolder& folder) { folder.write_config(R"(, "speculative_token_tree": "[(1, 0)]")"); },
      "speculative_token_tree");
  refused(
      {}, [](const MedusaFolder& folder) { folder.write_config(R"(, "speculative_token_tree": "[]")"); },
      "config.json:1: speculative_token_tree []: no paths");
  refused(
      {},
      [](const MedusaFolder& folder) {
        folder.write_config(R"(, "speculative_token_tree": "[(0,), (0, 0), (0, 0, 0), (0, 0, 0, 0)]")");
      },
      "must have at most 3 levels, as there are heads");
  const auto weights = [&](const MedusaSizes& sizes, const std::function<void(MedusaFolder&)>& damage,
                           const std::string& because) {
    refused(
        sizes, [&](MedusaFolder& folder) { damage(folder), folder.write_weights(); }, because);
  };
  weights(
      {}, [&](MedusaFolder& folder) { folder.remove(name); }, "tensor '" + name + "' is missing");
  weights(
      {},
      [&](MedusaFolder& folder) {
        folder.tensor(name).shape = {32, 128};
      },
      "has shape [32, 128], but config.json makes it [64, 64]");
  weights(
      {}, [&](MedusaFolder& folder) { folder.tensor(name).values[70] = NAN; }, "is NaN or infinite");
  weights(
      {.dtype = Dtype::f16}, [&](MedusaFolder& folder) { folder.tensor(name).values[4095] = INFINITY; },
      "is NaN or infinite");
  weights(
      {.truncated_vocab_size = 40}, [](MedusaFolder& folder) { folder.token_map()[3] = 96; },
      "has token 96, outside the vocabulary of 96");
  weights(
      {.truncated_vocab_size = 40}, [](MedusaFolder& folder) { folder.token_map().pop_back(); },
      "tensor 'token_map' has shape [39]");
  weights(
      {.truncated_vocab_size = 40}, [](MedusaFolder& folder) { folder.token_map().clear(); },
      "tensor 'token_map' is missing");
}

TEST_CASE("the tree is the asked one, else the heads' own, else a chain", "[medusa]") {
  const ModelWeights model = small_weights();
  MedusaFolder folder({});
  CHECK(medusa_shape(load_medusa_weights(folder.path(), model), {}) == chain_shape(3));
  folder.write_config(R"(, "speculative_token_tree": "[(0,), (1,), (0, 0)]")");
  const MedusaWeights weights = load_medusa_weights(folder.path(), model);
  CHECK(medusa_shape(weights, {}) == parse_draft_shape("[(0,), (1,), (0, 0)]"));
  CHECK(medusa_shape(weights, chain_shape(2)) == chain_shape(2));
  CHECK_THROWS_WITH(medusa_shape(weights, chain_shape(4)),
                    ContainsSubstring("the draft is 4 tokens deep, but there are 3 Medusa heads"));
}

TEST_CASE("Medusa drafts the product of its heads' guesses after the last accepted token", "[medusa]") {
  const ModelWeights model = small_weights();
  MedusaFolder folder({});
  for (const bool on_gpu : {false, true}) {
    Stepper stepper = on_gpu ? Stepper(host_gpu(), model, {.kv_dtype = Dtype::f16}) : Stepper(model);
    const DraftShape shape = parse_draft_shape("[(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]");
    MedusaDrafter drafter(stepper.executor(), load_medusa_weights(folder.path(), model), shape);
    stepper.step({{0, Phase::prefill, tokens_from(3, 9)}, {1, Phase::prefill, tokens_from(5, 4)}});
    Sequence first({.id = 0, .prompt_token_ids = tokens_from(3, 9)}),
        second({.id = 1, .prompt_token_ids = tokens_from(5, 4)});
    first.tokens.push_back(7);
    second.tokens.insert(second.tokens.end(), {8, 9});
    // As if the two rows were the second sequence's last token and its draft, whose one node was accepted.
    const DraftTree draft = chain(std::vector<TokenId>{8});
    const Verdict plain{.tokens = {7}}, accepted{.tokens = {8, 9}, .path = {0}};
    const std::vector<ScheduledSequence> scheduled{{&first, 0, 0}, {&second, 63, 63}};
    CHECK(drafter.propose({}, scheduled).trees[1].empty());  // nothing is known of it
    drafter.judged(std::vector<JudgedSequence>{{&second, &draft, &accepted, 0}});
    std::vector<float> hidden(64);
    stepper.executor().copy_last_hidden(std::vector<int>{1}, hidden);
    const auto guesses = folder.guesses(hidden, 3);
    const Drafter::Proposal proposal = drafter.propose({}, scheduled);
    REQUIRE(proposal.trees.size() == 2);
    CHECK(proposal.trees[0].empty());
    const DraftTree& tree = proposal.trees[1];
    REQUIRE(tree.num_tokens() == shape.num_tokens());
    CHECK(tree.probabilities.empty());
    for (int node = 0; node < tree.num_tokens(); ++node) {
      const auto [token, parent, rank] = tree.nodes[static_cast<std::size_t>(node)];
      const int depth = tree.depths()[static_cast<std::size_t>(node)];
      CHECK(parent == shape.nodes[static_cast<std::size_t>(node)].parent);
      CHECK(token == guesses[static_cast<std::size_t>(depth - 1)][static_cast<std::size_t>(rank)]);
    }
    CHECK(drafter.propose({}, std::vector<ScheduledSequence>{{&second, 63, 1}}).trees[0].num_tokens() == 3);
    CHECK(drafter.propose({}, std::vector<ScheduledSequence>{{&second, 5, 3}}).trees[0].num_tokens() == 5);
    second.tokens.push_back(1);  // of which nothing is known yet
    CHECK(drafter.propose({}, scheduled).trees[1].empty());
    second.tokens.pop_back();
    drafter.forget(1);
    CHECK(drafter.propose({}, scheduled).trees[1].empty());
  }
}

TEST_CASE("what lm_head read is the same on each device and gives the logits", "[medusa][gpu]") {
  const ModelWeights model = small_weights();
  Stepper cpu(model, {.kv_dtype = Dtype::f16}), gpu(host_gpu(), model, {.kv_dtype = Dtype::f16});
  const std::vector<Feed> feeds{{0, Phase::prefill, tokens_from(3, 9)}, {1, Phase::prefill, tokens_from(5, 4)}};
  const std::vector<Logits> logits = cpu.step(feeds);
  gpu.step(feeds);
  std::vector<float> of_cpu(2 * 64), of_gpu(2 * 64);
  const std::vector<int> rows{1, 0};
  cpu.executor().copy_last_hidden(rows, of_cpu);
  gpu.executor().copy_last_hidden(rows, of_gpu);
  for (std::size_t i = 0; i < of_cpu.size(); ++i) CHECK(of_gpu[i] == Approx(of_cpu[i]).margin(1e-4));
  const kernels::WeightView& head = model.outer[WeightSlot::lm_head].weights[0];
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t token = 0; token < 96; ++token) {
      double sum = 0;
      for (std::size_t k = 0; k < 64; ++k)
        sum += static_cast<double>(of_cpu[row * 64 + k]) * f32_values(head)[token * 64 + k];
      CHECK(logits[1 - row][token] == Approx(sum).margin(1e-4));
    }
}

}  // namespace dculab::engine
