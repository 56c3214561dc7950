// Which free blocks of the prefix cache are given out first, and what is found again because of it.
#include <map>

#include "tests/core/cached_memory.hpp"
#include "tests/core/conversations.hpp"

using namespace dculab;

TEST_CASE("the block that was not used for longest goes first, the end of a prompt before its beginning",
          "[prefix_caching]") {
  BlockPool pool(6, 4, 0, PrefixCaching::on);
  std::vector<BlockCopy> copies;
  const auto fill = [&](const std::vector<TokenId>& tokens) {
    BlockTable table;
    const int cached = pool.adopt_prefix(table, tokens);
    REQUIRE(pool.append(table, static_cast<int>(tokens.size()) - cached, copies));
    pool.publish(table, tokens);
    pool.release(table);
    REQUIRE(pool.audit().empty());
    return cached;
  };
  CHECK(fill(counted(12)) == 0);      // 3 blocks
  CHECK(fill(counted(8, 100)) == 0);  // 2 blocks
  CHECK(pool.num_cached() == 5);
  CHECK(pool.num_free() == 6);
  CHECK(fill(counted(12)) == 12);     // now the youngest
  CHECK(fill(counted(8, 200)) == 0);  // takes the unused block, and the end of the second prompt
  CHECK(fill(counted(8, 100)) == 4);  // its beginning is left; its end evicts the end of the first prompt
  CHECK(fill(counted(12)) == 8);
  CHECK(copies.empty());
}

namespace {

// Fills the pool with one sequence after the other and returns how many tokens each found.
class OneByOne {
 public:
  OneByOne(int num_blocks, PrefixEviction eviction) : pool_(num_blocks, 4, 0, PrefixCaching::on, eviction) {}

  int serve(const std::vector<TokenId>& tokens) {
    BlockTable table;
    const int cached = pool_.adopt_prefix(table, tokens);
    pool_.count_uses(table, cached / 4);
    REQUIRE(pool_.append(table, static_cast<int>(tokens.size()) - cached, copies_));
    pool_.publish(table, tokens);
    pool_.release(table);
    REQUIRE(pool_.audit().empty());
    return cached;
  }

 private:
  BlockPool pool_;
  std::vector<BlockCopy> copies_;
};

}  // namespace

TEST_CASE("lfu keeps what is asked for again and again through a rush of what is asked for once", "[prefix_caching]") {
  std::map<PrefixEviction, int> found;
  for (const PrefixEviction eviction : {PrefixEviction::lru, PrefixEviction::lfu}) {
    OneByOne cache(12, eviction);
    TokenId next = 1000;
    for (int round = 0; round < 50; ++round) {
      std::vector<TokenId> conversation = counted(16);
      for (int own = 0; own < 4; ++own) conversation.push_back(next++);
      for (int times = 0; times < 2; ++times, conversation.back() = next++)
        found[eviction] += cache.serve(conversation);
      for (int other = 0; other < 4; ++other, next += 12) CHECK(cache.serve(counted(12, next)) == 0);
    }
  }
  // lru: other requests take all blocks before the next round. lfu: the beginning stays.
  CHECK(found[PrefixEviction::lru] == 50 * 16);
  CHECK(found[PrefixEviction::lfu] > 95 * 16);
}

TEST_CASE("lfu with aging forgets a prompt that is not sent any more", "[prefix_caching]") {
  OneByOne cache(12, PrefixEviction::lfu);
  for (int times = 0; times < 20; ++times) cache.serve(counted(16));
  // A new beginning that is found once each round; each round's other requests make the blocks older by about one.
  TokenId next = 1000;
  for (int round = 0; round < 100; ++round)
    for (int other = 0; other < 4; ++other, next += 12) cache.serve(counted(12, next));
  CHECK(cache.serve(counted(16)) == 0);
}

TEST_CASE("lfu: priorities by hand", "[prefix_caching]") {
  EvictionOrder order(PrefixEviction::lfu);
  for (const BlockId block : {0, 1, 2}) order.push(block);
  order.remove(0), order.count_use(0), order.push(0);  // priorities 2, 1, 1
  CHECK(order.take_first() == 1);                      // age 1
  order.push(3);                                       // 2: after 0, which is as low and older
  CHECK(order.take_first() == 2);
  CHECK(order.take_first() == 0);  // age 2
  order.push(0);                   // its uses are forgotten: 3
  CHECK(order.take_first() == 3);
  CHECK(order.take_first() == 0);
  CHECK(order.size() == 0);
  CHECK(order.audit().empty());
}
