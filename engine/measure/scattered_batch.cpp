#include "engine/measure/scattered_batch.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/block_pool.hpp"
#include "core/error.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] int blocks_of_sequence(const SequenceSlice& sequence, int block_size) {
  return (sequence.context_tokens() + block_size - 1) / block_size;
}

[[nodiscard]] int require_at_most(std::int64_t count, int most, const char* what) {
  if (count > most)
    throw InputError("a step has " + std::to_string(count) + " " + what + ", more than the engine runs (" +
                     std::to_string(most) + "); lower the batch or the context");
  return static_cast<int>(count);
}

}  // namespace

int tokens_of(const Batch& batch) { return require_at_most(batch.num_tokens(), kLongestContext, "new tokens"); }

int blocks_of(const Batch& batch, int block_size) {
  std::int64_t blocks = 0;
  for (const SequenceSlice& sequence : batch.sequences) blocks += blocks_of_sequence(sequence, block_size);
  return require_at_most(blocks, kMostBlocks, "KV blocks");
}

int decode_tokens_of(const Batch& batch) {
  int most = 1;
  for (const SequenceSlice& sequence : batch.sequences) {
    if (sequence.phase != Phase::decode) continue;
    most =
        std::max(most, sequence.num_tree_tokens > 0 ? std::max(2, sequence.num_new_tokens) : sequence.num_new_tokens);
  }
  return most;
}

Batch scattered_batch(Batch batch, const ModelShape& model, int block_size, int num_blocks, std::mt19937_64& random) {
  std::uniform_int_distribution<TokenId> token(0, model.vocab_size - 1);
  std::vector<BlockId> free(static_cast<std::size_t>(num_blocks));
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), random);
  batch.tree_masks.clear();
  for (const SequenceSlice& sequence : batch.sequences) {
    for (int index = 0; index < sequence.num_new_tokens; ++index) batch.token_ids.push_back(token(random));
    const int tree = sequence.num_tree_tokens;
    for (int place = tree - sequence.num_new_tokens; tree > 0 && place < tree; ++place)
      batch.tree_masks.push_back(~std::uint64_t{0} >> (63 - place));
    const auto first = free.end() - blocks_of_sequence(sequence, block_size);
    batch.block_tables.emplace_back(first, free.end());
    free.erase(first, free.end());
  }
  return batch;
}

}  // namespace dculab::engine
