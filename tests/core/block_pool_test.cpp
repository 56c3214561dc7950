#include "core/block_pool.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

// A table beside what its sequence wrote through it.
struct Writer {
  BlockTable table;
  std::vector<int> written;  // [table.num_tokens()]
};

// Does random things to a pool and to a memory that obeys its tables and copies, and checks the one by the other.
class PoolExercise {
 public:
  PoolExercise(unsigned seed, int num_blocks, int block_size) : random_(seed), pool_(num_blocks, block_size) {}

  void act() {
    const int action = pick(100);
    if (writers_.empty() || action < 6)
      start();
    else if (action < 66)
      append(any(), 1 + pick(pick(4) == 0 ? 3 * pool_.block_size() : 2));
    else if (action < 76)
      fork(any());
    else if (action < 94)
      release(any());
    else
      preempt(any());
  }

  void check() const {
    std::map<BlockId, int> holders;
    for (const Writer& writer : writers_) {
      REQUIRE(writer.table.num_tokens() == static_cast<int>(writer.written.size()));
      REQUIRE(static_cast<int>(writer.table.blocks().size()) == pool_.blocks_for(writer.table.num_tokens()));
      for (const BlockId block : writer.table.blocks()) ++holders[block];
      check_contents(writer);
    }
    for (BlockId block = 0; block < pool_.num_blocks(); ++block)
      if (pool_.references(block) != (holders.contains(block) ? holders[block] : 0)) FAIL("wrong count of " << block);
    REQUIRE(pool_.num_free() == pool_.num_blocks() - static_cast<int>(holders.size()));
    REQUIRE(pool_.audit().empty());
  }

  void finish() {
    while (!writers_.empty()) release(0);
    REQUIRE(pool_.num_free() == pool_.num_blocks());
    REQUIRE(pool_.audit().empty());
  }

  [[nodiscard]] int num_copies() const { return num_copies_; }
  [[nodiscard]] int num_refusals() const { return num_refusals_; }

 private:
  int pick(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  std::size_t any() { return static_cast<std::size_t>(pick(static_cast<int>(writers_.size()))); }

  void start() { writers_.emplace_back(); }

  void append(std::size_t index, int count) {
    Writer& writer = writers_[index];
    const int before = writer.table.num_tokens();
    const int free_before = pool_.num_free();
    const std::vector<BlockId> blocks_before(writer.table.blocks().begin(), writer.table.blocks().end());
    std::vector<BlockCopy> copies;
    if (!pool_.append(writer.table, count, copies)) {
      ++num_refusals_;
      REQUIRE(copies.empty());
      REQUIRE(pool_.num_free() == free_before);
      REQUIRE(std::ranges::equal(writer.table.blocks(), blocks_before));
      REQUIRE(writer.table.num_tokens() == before);
      const int wanted = pool_.blocks_for(before + count) - static_cast<int>(blocks_before.size());
      REQUIRE(wanted + 1 > free_before);  // one more for a copy
      return;
    }
    for (const BlockCopy& copy : copies) memory_[copy.destination] = memory_[copy.source];
    num_copies_ += static_cast<int>(copies.size());
    write(writer, before);
  }

  void write(Writer& writer, int from) {
    for (int position = from; position < writer.table.num_tokens(); ++position) {
      const auto [block, offset] = place(writer, position);
      REQUIRE(pool_.references(block) == 1);
      auto& contents = memory_[block];
      contents.resize(static_cast<std::size_t>(pool_.block_size()));
      contents[offset] = next_value_;
      writer.written.push_back(next_value_++);
    }
  }

  void fork(std::size_t index) {
    Writer copy{.table = pool_.fork(writers_[index].table), .written = writers_[index].written};
    writers_.push_back(std::move(copy));
  }

  void release(std::size_t index) {
    pool_.release(writers_[index].table);
    writers_.erase(writers_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // Loses all blocks, and computes everything again if there is room.
  void preempt(std::size_t index) {
    const int lost = writers_[index].table.num_tokens();
    pool_.release(writers_[index].table);
    writers_[index].written.clear();
    append(index, lost);
  }

  [[nodiscard]] std::pair<BlockId, std::size_t> place(const Writer& writer, int position) const {
    const std::int64_t slot = pool_.slot(writer.table, position);
    return {static_cast<BlockId>(slot / pool_.block_size()), static_cast<std::size_t>(slot % pool_.block_size())};
  }

  void check_contents(const Writer& writer) const {
    for (int position = 0; position < writer.table.num_tokens(); ++position) {
      const auto [block, offset] = place(writer, position);
      if (memory_.at(block)[offset] != writer.written[static_cast<std::size_t>(position)])
        FAIL("position " << position << " in block " << block << " has been overwritten");
    }
  }

  std::mt19937 random_;
  BlockPool pool_;
  std::vector<Writer> writers_;
  std::map<BlockId, std::vector<int>> memory_;  // [block][offset]
  int next_value_ = 0;
  int num_copies_ = 0;
  int num_refusals_ = 0;
};

}  // namespace

TEST_CASE("random use neither leaks, nor uses twice, nor overwrites", "[block_pool]") {
  constexpr int kSeeds = 60;
  constexpr int kActions = 2000;
  for (const int block_size : {1, 2, 16, 256}) {
    int copies = 0;
    int refusals = 0;
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      INFO("block_size " << block_size << ", seed " << seed);
      PoolExercise exercise(seed, 20 + static_cast<int>(seed), block_size);
      for (int action = 0; action < kActions; ++action) {
        exercise.act();
        if (action % 50 == 0) exercise.check();
      }
      exercise.check();
      exercise.finish();
      copies += exercise.num_copies();
      refusals += exercise.num_refusals();
    }
    INFO("block_size " << block_size << ": " << copies << " copies, " << refusals << " refusals");
    REQUIRE(refusals > 1000);  // the pools were small enough to run out
    REQUIRE((copies > 1000) == (block_size > 1));
  }
}

TEST_CASE("writing to a shared block copies it, a full shared block is left alone", "[block_pool]") {
  BlockPool pool(8, 4);
  std::vector<BlockCopy> copies;
  BlockTable parent;
  REQUIRE(pool.append(parent, 6, copies));
  BlockTable child = pool.fork(parent);
  REQUIRE(pool.num_free() == 6);
  REQUIRE(copies.empty());

  REQUIRE(pool.append(child, 3, copies));  // 6..8: the rest of block 1, and a new one
  REQUIRE(copies.size() == 1);
  REQUIRE(copies[0].source == parent.blocks()[1]);
  REQUIRE(copies[0].destination == child.blocks()[1]);
  REQUIRE(child.blocks()[0] == parent.blocks()[0]);
  REQUIRE(pool.references(parent.blocks()[0]) == 2);
  REQUIRE(pool.references(parent.blocks()[1]) == 1);

  copies.clear();
  REQUIRE(pool.append(parent, 1, copies));  // its own by now
  REQUIRE(copies.empty());
  pool.release(parent);
  pool.release(child);

  REQUIRE(pool.append(parent, 4, copies));
  child = pool.fork(parent);
  REQUIRE(pool.append(child, 1, copies));  // starts a block: nothing shared is written
  REQUIRE(copies.empty());
  pool.release(parent);
  pool.release(child);
  REQUIRE(pool.num_free() == 8);
}

TEST_CASE("a copy needs a free block of its own", "[block_pool]") {
  BlockPool pool(2, 4);
  std::vector<BlockCopy> copies;
  BlockTable parent;
  REQUIRE(pool.append(parent, 6, copies));
  BlockTable child = pool.fork(parent);
  REQUIRE_FALSE(pool.append(child, 1, copies));
  REQUIRE(copies.empty());
  REQUIRE(child.num_tokens() == 6);
  pool.release(parent);
  REQUIRE(pool.append(child, 1, copies));  // no longer shared
  REQUIRE(copies.empty());
  pool.release(child);
}

TEST_CASE("the watermark counts for admission only", "[block_pool]") {
  BlockPool pool(100, 16, 0.05);
  REQUIRE(pool.watermark_blocks() == 5);
  REQUIRE(pool.can_admit(95 * 16));
  REQUIRE_FALSE(pool.can_admit(95 * 16 + 1));
  BlockTable table;
  std::vector<BlockCopy> copies;
  REQUIRE(pool.append(table, 100 * 16, copies));
  REQUIRE_FALSE(pool.append(table, 1, copies));
  pool.release(table);
}

TEST_CASE("blocks and slots of a table", "[block_pool]") {
  for (int block_size = 1; block_size <= 256; block_size *= 2) {
    BlockPool pool(4, block_size);
    REQUIRE(pool.block_size() == block_size);
    REQUIRE(pool.blocks_for(0) == 0);
    REQUIRE(pool.blocks_for(1) == 1);
    REQUIRE(pool.blocks_for(block_size) == 1);
    REQUIRE(pool.blocks_for(block_size + 1) == 2);
    REQUIRE(pool.blocks_for(std::int64_t{1} << 30) == (1 << 30) / block_size);
    BlockTable other;
    BlockTable table;
    std::vector<BlockCopy> copies;
    REQUIRE(pool.append(other, 1, copies));
    REQUIRE(pool.append(table, 2 * block_size, copies));
    REQUIRE(pool.slot(table, block_size - 1) == 2 * block_size - 1);  // block 1, its last slot
    REQUIRE(pool.slot(table, block_size) == 2 * block_size);          // block 2, its first slot
    pool.release(other);
    pool.release(table);
  }
}

TEST_CASE("a moved-from table holds nothing", "[block_pool]") {
  BlockPool pool(4, 4);
  std::vector<BlockCopy> copies;
  BlockTable table;
  REQUIRE(pool.append(table, 5, copies));
  BlockTable moved = std::move(table);
  REQUIRE(moved.num_tokens() == 5);
  REQUIRE(table.num_tokens() == 0);
  REQUIRE(table.blocks().empty());
  pool.release(moved);
  REQUIRE(pool.num_free() == 4);
}

TEST_CASE("a pool as large as can be takes memory for the blocks it gives out alone", "[block_pool]") {
  BlockPool pool(kMostBlocks, 2, 0, PrefixCaching::on);
  std::vector<BlockCopy> copies;
  BlockTable table;
  const std::vector<TokenId> tokens{1, 2, 3, 4, 5};
  REQUIRE(pool.append(table, 5, copies));
  pool.publish(table, tokens);
  CHECK(pool.num_free() == kMostBlocks - 3);
  CHECK(pool.references(kMostBlocks - 1) == 0);
  pool.release(table);
  CHECK(pool.num_free() == kMostBlocks);
  CHECK(pool.num_cached() == 2);
  CHECK(pool.audit().empty());
  REQUIRE(pool.adopt_prefix(table, tokens) == 4);
  CHECK(table.blocks()[1] == 1);
  pool.release(table);
}
