#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

namespace anyslot {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(5);
  std::set<BlockId> seen;
  for (const int64_t count : {2, 0, 3}) {
    for (const BlockId block : pool.allocate(count)) {
      EXPECT_TRUE(pool.contains(block));
      EXPECT_FALSE(pool.is_free(block));
      EXPECT_TRUE(seen.insert(block).second) << block;
    }
  }
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_EQ(pool.num_free(), 0);
}

TEST(BlockPool, TakesFreedBlocksBack) {
  BlockPool pool(4);
  const std::vector<BlockId> run = pool.allocate(3);
  pool.free(run);
  EXPECT_EQ(pool.num_free(), 4);
  for (const BlockId block : run) EXPECT_TRUE(pool.is_free(block));
  EXPECT_EQ(pool.allocate(3), run) << "a run that is handed out again keeps its order";
  pool.free(run);
  for (const BlockId block : run) {
    EXPECT_EQ(pool.allocate_one(), block) << "one by one as well";
    EXPECT_FALSE(pool.is_free(block));
  }
}

TEST(BlockPool, RefusesMoreThanIsFree) {
  BlockPool pool(3);
  pool.allocate(1);
  EXPECT_THROW(pool.allocate(3), std::logic_error);
  EXPECT_THROW(pool.allocate(-1), std::logic_error);
  EXPECT_EQ(pool.num_free(), 2);
  pool.allocate(2);
  EXPECT_THROW(pool.allocate_one(), std::logic_error);
  EXPECT_THROW(BlockPool(-1), std::logic_error);
}

TEST(BlockPool, RefusesToFreeWhatIsNotTaken) {
  BlockPool pool(4);
  const std::vector<BlockId> taken = pool.allocate(2);
  const BlockId unknown = 4;
  const BlockId negative = -1;
  const BlockId free_block = taken[0] == 3 || taken[1] == 3 ? 0 : 3;
  for (const BlockId bad : {unknown, negative, free_block, taken[0]}) {
    const std::vector<BlockId> blocks{taken[0], taken[1], bad};
    EXPECT_THROW(pool.free(blocks), std::logic_error) << bad;
    EXPECT_EQ(pool.num_free(), 2) << "nothing of the list may be freed";
    EXPECT_FALSE(pool.is_free(taken[0]));
    EXPECT_FALSE(pool.is_free(taken[1]));
  }
  pool.free(taken);
  EXPECT_THROW(pool.free(taken), std::logic_error);
}

}  // namespace
}  // namespace anyslot
