// DeepSeek's MTP layer as a drafter: what it drafts depends on the tokens alone, however they are served.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/safetensors.hpp"
#include "engine/generate/engine_core.hpp"
#include "engine/generate/wall_clock.hpp"
#include "model/folder/model_config.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

const std::filesystem::path kMtpModel = std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/mtp";

using Tokens = std::vector<TokenId>;
using Drafts = std::map<Tokens, Tokens>;  // what was drafted behind which tokens

Tokens expected_tokens(const std::string& name) {
  const MappedFile file((kMtpModel / "expected.safetensors").string());
  const std::span<const std::byte> bytes = read_tensor_table(file.bytes(), "expected").at(name).bytes;
  Tokens values(bytes.size() / sizeof(TokenId));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Notes what another drafter proposes.
class Listener final : public Drafter {
 public:
  Listener(std::unique_ptr<Drafter> drafter, Drafts& drafts) : drafter_(std::move(drafter)), drafts_(drafts) {}

  Proposal propose(const Batch& batch, std::span<const ScheduledSequence> sequences) override {
    Proposal proposal = drafter_->propose(batch, sequences);
    for (std::size_t index = 0; index < sequences.size(); ++index)
      for (const DraftNode& node : proposal.trees[index].nodes)
        drafts_[sequences[index].sequence->tokens].push_back(node.token);
    return proposal;
  }
  void judged(std::span<const JudgedSequence> sequences) override { drafter_->judged(sequences); }
  void copy_blocks(std::span<const BlockCopy> copies) override { drafter_->copy_blocks(copies); }
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override {
    drafter_->swap_blocks(out, in);
  }
  void move_slots(std::span<const SlotMove> moves) override { drafter_->move_slots(moves); }
  void forget(SequenceId id) override { drafter_->forget(id); }

 private:
  std::unique_ptr<Drafter> drafter_;
  Drafts& drafts_;
};

struct ServedDrafts {
  std::map<SequenceId, Tokens> texts;
  Drafts drafts;
  ServingReport report;
};

ServedDrafts serve_with(const GeneratorOptions& asked, const SamplingParams& sampling = {}) {
  ModelWeights weights = load_weights(kMtpModel);
  const EngineOptions options = served_options(asked, weights.shape);
  OpenModel model = open_model(std::move(weights), options, asked);
  WallClock clock;
  ServedDrafts served;
  auto& drafter = model.drafts.drafter;
  if (drafter) drafter = std::make_unique<Listener>(std::move(drafter), served.drafts);
  EngineCore core(model, options, clock, RequestRecords::keep,
                  {.on_finished = [&](const Sequence& each) { served.texts[each.request.id] = each.tokens; }});
  for (int prompt = 0; prompt < 3; ++prompt)
    REQUIRE_FALSE(core.loop().submit({.id = prompt,
                                      .prompt_token_ids = expected_tokens("prompt." + std::to_string(prompt)),
                                      .max_tokens = 30,
                                      .sampling = sampling,
                                      .arrival = {}}));
  core.loop().run();
  served.report = core.loop().report();
  return served;
}

GeneratorOptions mtp_options(int block_size, int num_tokens) {
  GeneratorOptions options;
  options.engine.kv_cache_dtype = Dtype::f32;
  options.engine.block_size = block_size;
  options.num_threads = 2;
  if (num_tokens == 0) return options;
  options.engine.speculative_config = {.method = SpeculativeMethod::mtp, .shape = chain_shape(num_tokens)};
  options.speculative_model = kMtpModel;
  return options;
}

// Chunked prefills, and memory for fewer sequences than run.
GeneratorOptions cramped_mtp(GeneratorOptions options, bool swaps) {
  const ModelShape shape = read_model_shape(kMtpModel);
  const auto bytes = [&](int tokens) {
    return kv_bytes_per_token(shape, Dtype::f32) * options.engine.block_size * 1.5 *
           (tokens / options.engine.block_size);
  };
  options.engine.max_num_batched_tokens = 11;
  options.kv_cache_memory = bytes(200);
  if (swaps) {
    options.engine.preemption_mode = PreemptionMode::swap;
    options.engine.swap_space = bytes(400);
  }
  return options;
}

}  // namespace

TEST_CASE("the MTP layer drafts what its reference does, and leaves texts as they are", "[mtp]") {
  const ServedDrafts alone = serve_with(mtp_options(16, 0));
  for (const int block_size : {1, 16, 64})
    for (const int num_tokens : {1, 4}) {
      INFO("blocks of " << block_size << ", " << num_tokens << " tokens");
      const ServedDrafts served = serve_with(mtp_options(block_size, num_tokens));
      CHECK(served.texts == alone.texts);
      CHECK(served.report.drafts.num_drafts > 20);
      for (int prompt = 0; prompt < 3; ++prompt) {
        const std::string of = "." + std::to_string(prompt);
        Tokens tokens = expected_tokens("prompt" + of), expected = expected_tokens("drafts" + of);
        tokens.push_back(expected_tokens("next" + of).front());
        expected.resize(static_cast<std::size_t>(num_tokens));
        REQUIRE(served.drafts.contains(tokens));
        CHECK(served.drafts.at(tokens) == expected);
      }
    }
}

TEST_CASE("what the MTP layer drafts does not depend on chunks and preemption", "[mtp]") {
  const ServedDrafts easy = serve_with(mtp_options(4, 3));
  for (const bool swaps : {false, true}) {
    const ServedDrafts cramped = serve_with(cramped_mtp(mtp_options(4, 3), swaps));
    CHECK(cramped.texts == easy.texts);
    CHECK(cramped.report.num_preemptions > 0);
    int compared = 0;
    for (const auto& [tokens, drafts] : cramped.drafts) {
      const auto found = easy.drafts.find(tokens);
      if (found == easy.drafts.end()) continue;  // within a draft that was accepted there
      const std::size_t both = std::min(drafts.size(), found->second.size());
      CHECK(std::equal(drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(both), found->second.begin()));
      ++compared;
    }
    CHECK(compared > 20);
  }
}

TEST_CASE("an MTP layer drafts sampled texts by their own distribution", "[mtp]") {
  const ServedDrafts served = serve_with(mtp_options(16, 2), {.temperature = 1.0, .seed = 3});
  CHECK(served.report.drafts.num_drafts > 20);
}

TEST_CASE("MTP is refused for a tree, on a GPU and without its layer", "[mtp]") {
  GeneratorOptions tree = mtp_options(16, 2);
  tree.engine.speculative_config.shape = parse_draft_shape("[(0,), (1,)]");
  CHECK_THROWS_WITH(serve_with(tree), ContainsSubstring("mtp drafts a chain"));
  GeneratorOptions gpu = mtp_options(16, 1);
  gpu.engine.kv_cache_dtype = Dtype::f16;
  gpu.device.kind = DeviceKind::host_gpu;
  CHECK_THROWS_AS(serve_with(gpu), InputError);
  GeneratorOptions without = mtp_options(16, 1);
  without.speculative_model.clear();
  CHECK_THROWS_WITH(serve_with(without), ContainsSubstring("needs a model with a layer for it"));
}

}  // namespace dculab::engine
