#include "kv/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace anyslot {
namespace {

Digest filled(char letter) {
  Digest digest;
  digest.bytes.fill(static_cast<uint8_t>(letter));
  return digest;
}

const KeyDomain kDomain{filled('M'), "lora"};

// The shell that made the digests below; a field is its length and its bytes:
//   f() { printf "\\x$(printf %02x $1)\0\0\0\0\0\0\0$2"; }
//   m=MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM c=CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC
//   s=SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS
TEST(Keys, DigestsAreStable) {
  // (f 19 'anyslot document v1'; f 32 $m; f 4 lora; f 6 turned; f 4 salt;
  //  f 8 '\3\0\0\0\0\0\0\0'; f 12 '\1\0\0\0\2\0\0\0\2\1\0\0') | sha256sum
  EXPECT_EQ(document_key(kDomain, "turned", "salt", std::vector<int32_t>{1, 2, 258}).hex(),
            "754c5fe5ee3e522255fcec34dc09e05ea0346c0272c81219d051cc640fbc08f4");
  // (f 20 'anyslot text root v1'; f 32 $m; f 4 lora; f 6 turned; f 4 salt) | sha256sum
  EXPECT_EQ(text_chain_root(kDomain, "turned", "salt").hex(),
            "c486d494470fe32d52eac2b88667fe42b007e0e069fc03f89fa8506671743838");
  // (f 18 'anyslot segment v1'; f 32 $c; f 8 document; f 32 $s) | sha256sum
  EXPECT_EQ(extend_with_segment(filled('C'), "document", filled('S')).hex(),
            "04b98504c7b7a391b885b2039d2368fb27fefcc40019d2cc802e073cead5e4dc");
  // (f 21 'anyslot text block v1'; f 32 $c; f 8 '\2\0\0\0\0\0\0\0';
  //  f 8 '\1\0\0\0\2\1\0\0') | sha256sum
  EXPECT_EQ(block_key(filled('C'), std::vector<int32_t>{1, 258}).hex(),
            "95fbd498f9d5cc2e102facc7dc6819cf1a9c2f48baf273ccbd1d331ff36d701f");
}

TEST(Keys, EveryPartOfADocumentMatters) {
  const std::vector<int32_t> ids{1, 2, 3};
  const std::vector<Digest> keys{
      document_key(kDomain, "turned", "salt", ids),
      document_key({filled('N'), "lora"}, "turned", "salt", ids),
      document_key({filled('M'), ""}, "turned", "salt", ids),
      document_key({filled('M'), "lora2"}, "turned", "salt", ids),
      document_key(kDomain, "raw", "salt", ids),
      document_key(kDomain, "turned", "", ids),
      document_key(kDomain, "turned", "salu", ids),
      document_key(kDomain, "turneds", "alt", ids),
      document_key({filled('M'), "lorat"}, "urned", "salt", ids),
      document_key(kDomain, "turned", "salt", std::vector<int32_t>{1, 2}),
      document_key(kDomain, "turned", "salt", std::vector<int32_t>{1, 2, 3, 0}),
      document_key(kDomain, "turned", "salt", std::vector<int32_t>{3, 2, 1}),
      document_key(kDomain, "turned", "salt", std::vector<int32_t>{}),
      text_chain_root(kDomain, "turned", "salt"),
      text_chain_root({filled('N'), "lora"}, "turned", "salt"),
      text_chain_root({filled('M'), ""}, "turned", "salt"),
      text_chain_root(kDomain, "raw", "salt"),
      text_chain_root(kDomain, "turned", ""),
      text_chain_root(kDomain, "turneds", "alt"),
  };
  EXPECT_EQ(std::set<Digest>(keys.begin(), keys.end()).size(), keys.size());
  EXPECT_EQ(keys[0], document_key(kDomain, "turned", "salt", ids)) << "equal parts, equal keys";
}

TEST(Keys, EveryPredecessorOfTextMatters) {
  const Digest root = text_chain_root(kDomain, "turned", "");
  const Digest a = filled('A');
  const Digest b = filled('B');
  const std::vector<int32_t> first(16, 1);
  const std::vector<int32_t> second(16, 2);
  const auto after = [&](const Digest& chain) { return block_key(chain, second); };
  const std::vector<Digest> keys{
      after(root),
      after(extend_with_segment(root, "document", a)),
      after(extend_with_segment(root, "text", a)),
      after(extend_with_segment(root, "document", b)),
      after(extend_with_segment(extend_with_segment(root, "document", a), "document", b)),
      after(extend_with_segment(extend_with_segment(root, "document", b), "document", a)),
      after(extend_with_segment(extend_with_segment(root, "text", a), "document", b)),
      after(extend_with_segment(extend_with_segment(root, "document", a), "document", a)),
      after(block_key(root, first)),
      after(block_key(root, second)),
      after(text_chain_root(kDomain, "raw", "")),
      after(text_chain_root(kDomain, "turned", "other tenant")),
      block_key(root, first),
  };
  EXPECT_EQ(std::set<Digest>(keys.begin(), keys.end()).size(), keys.size());
}

}  // namespace
}  // namespace anyslot
