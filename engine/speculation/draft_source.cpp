#include "engine/speculation/draft_source.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "engine/speculation/draft_model.hpp"
#include "engine/speculation/medusa.hpp"
#include "engine/speculation/mtp.hpp"
#include "engine/speculation/prompt_lookup.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "model/draft_heads.hpp"
#include "model/folder/model_files.hpp"
#include "model/kv/kv_bytes.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

DraftSource make_draft_model(const OpenDevice& device, const EngineOptions& options, const ModelExecutor& target,
                             ModelWeights draft) {
  const EngineOptions own = draft_options(options, draft.shape);
  const int context = draft.shape.max_position_embeddings;
  auto executor = make_executor(device, std::move(draft), target.kv_cache(), own, std::max(1, target.num_threads()));
  return {std::make_unique<DraftModel>(std::move(executor), own, options.speculative_config.shape), context};
}

std::unique_ptr<Drafter> make_mtp(const OpenDevice& device, const EngineOptions& options, ModelExecutor& target,
                                  MtpWeights weights) {
  if (device.gpu != nullptr) throw InputError("speculative_config mtp is for --device cpu");
  auto layer = std::make_unique<MtpLayer>(std::move(weights), target.kv_cache(), device.threads);
  return std::make_unique<MtpDrafter>(target, std::move(layer), options);
}

}  // namespace

void require_draft_of(const ModelShape& target, const ModelShape& draft, const EngineOptions& options) {
  if (draft.vocab_size != target.vocab_size)
    throw InputError("the draft model " + draft.name + " has a vocabulary of " + std::to_string(draft.vocab_size) +
                     " tokens, " + target.name + " one of " + std::to_string(target.vocab_size) +
                     "; take a draft model with the same tokenizer");
  const EngineOptions own = draft_options(options, draft);
  if (const auto found = problems(own, draft); !found.empty()) throw InputError("the draft model", found.front());
}

void require_same_tokens(const std::filesystem::path& target_folder, const std::filesystem::path& draft_folder) {
  const auto target_file = target_folder / "tokenizer.json", draft_file = draft_folder / "tokenizer.json";
  if (!std::filesystem::exists(target_file) || !std::filesystem::exists(draft_file)) return;
  const std::string target_text = read_model_text(target_file), draft_text = read_model_text(draft_file);
  if (target_text == draft_text) return;
  const Tokenizer target = Tokenizer::parse(target_text, target_file.string());
  const Tokenizer draft = Tokenizer::parse(draft_text, draft_file.string());
  for (TokenId token = 0; token < std::min(target.vocab_size(), draft.vocab_size()); ++token)
    if (target.token_bytes(token, SpecialText::show) != draft.token_bytes(token, SpecialText::show))
      throw InputError(draft_file.string(), "token " + std::to_string(token) + " is another than in " +
                                                target_file.string() + "; take a draft model with the same tokenizer");
}

Bytes draft_memory_besides_kv(const OpenDevice& device, const ModelShape& target, const DraftWeights& draft,
                              const EngineOptions& options) {
  if (draft.model) return memory_besides_kv(device, draft.model->shape, draft_options(options, draft.model->shape));
  // Heads of the CPU, and its layer for further tokens, are in memory already.
  return draft.medusa && device.gpu ? medusa_footprint(target, draft.medusa->num_heads()) : Bytes();
}

Bytes draft_block_bytes(const DraftWeights& draft, const EngineOptions& options) {
  if (draft.model) return kv_block_bytes(draft.model->shape, options);
  return draft.mtp ? kv_block_bytes(draft.mtp->layer.shape, options) : Bytes();
}

DraftSource make_draft_source(const OpenDevice& device, const EngineOptions& options, ModelExecutor& target,
                              DraftWeights draft) {
  const SpeculativeConfig& config = options.speculative_config;
  switch (config.method) {
    case SpeculativeMethod::none:
      return {};
    case SpeculativeMethod::draft_model:
      if (!draft.model) throw InputError("speculative_config draft_model needs a draft model; name its folder");
      return make_draft_model(device, options, target, *std::move(draft.model));
    case SpeculativeMethod::ngram:
      return {.drafter = std::make_unique<PromptLookup>(config)};
    case SpeculativeMethod::medusa:
      if (!draft.medusa) throw InputError("speculative_config medusa needs heads; name their folder");
      return {.drafter =
                  std::make_unique<MedusaDrafter>(target, *draft.medusa, medusa_shape(*draft.medusa, config.shape))};
    case SpeculativeMethod::mtp:
      if (!draft.mtp) throw InputError("speculative_config mtp needs a model with a layer for it");
      return {.drafter = make_mtp(device, options, target, *std::move(draft.mtp))};
  }
  return {};
}

}  // namespace dculab::engine
