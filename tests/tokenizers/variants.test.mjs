// Tokenizers made from real vocabularies and every step that a tokenizer.json may have: the same ids and text as Hugging Face's
// implementation gives.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { compareMade } from "./compare.mjs";
import { Random, seed } from "./random.mjs";
import { modelFolder } from "./reference.mjs";

const strings = 900; // of each variant

const sequence = (field, ...steps) => ({ type: "Sequence", [field]: steps });
const normalizers = (...steps) => ({ normalizer: sequence("normalizers", ...steps) });
const preTokenizers = (...steps) => ({ normalizer: null, pre_tokenizer: sequence("pretokenizers", ...steps) });
const decoders = (...steps) => ({ decoder: sequence("decoders", ...steps) });
const metaspace = (fields) => ({ type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true, ...fields });
const replace = (pattern, content) => ({ type: "Replace", pattern, content });
const split = (pattern, behavior, invert = false) => ({ type: "Split", pattern, behavior, invert });
const byteLevel = (fields) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true, ...fields });
const token = (id, content, fields) => ({
  id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: false, ...fields,
});
const prepend = { type: "Prepend", prepend: "▁" };
const spaces = replace({ String: " " }, "▁");

/** What to change in llama2, whose words are characters with byte fallback. */
const ofCharacters = {
  "NFC, then metaspaces": normalizers({ type: "NFC" }, prepend, spaces),
  "NFD and lower case": normalizers({ type: "NFD" }, { type: "Lowercase" }, spaces),
  "NFKD, stripped": normalizers({ type: "NFKD" }, { type: "Strip", strip_left: true, strip_right: true }, prepend, spaces),
  "NFKC, a regex replaced": normalizers({ type: "NFKC" }, replace({ Regex: " {2,}" }, "▁"), spaces),
  "Metaspace, always": preTokenizers(metaspace()),
  "Metaspace, first": preTokenizers(metaspace({ prepend_scheme: "first" })),
  "Metaspace, never, whole": preTokenizers(metaspace({ prepend_scheme: "never", split: false })),
  "Metaspace behind digits": preTokenizers({ type: "Digits", individual_digits: true }, metaspace({ prepend_scheme: "first" })),
  "Whitespace and digits": preTokenizers({ type: "Whitespace" }, { type: "Digits", individual_digits: false }),
  "WhitespaceSplit and punctuation": preTokenizers({ type: "WhitespaceSplit" }, { type: "Punctuation", behavior: "MergedWithPrevious" }),
  "Metaspace decoder": decoders({ type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true }),
  "Metaspace decoder that keeps the first": decoders({ type: "Metaspace", replacement: "▁", prepend_scheme: "never", split: true }),
  "decoder that strips tokens": decoders({ type: "Strip", content: "▁", start: 1, stop: 0 }, { type: "ByteFallback" }, { type: "Fuse" }),
  "decoder that strips three": decoders(spaceDecoder(), { type: "ByteFallback" }, { type: "Fuse" }, { type: "Strip", content: " ", start: 3, stop: 0 }),
  "unknown characters, fused": { model: { byte_fallback: false, fuse_unk: true } },
  "unknown characters, each": { model: { byte_fallback: false, fuse_unk: false } },
  "whole words first": { ...preTokenizers(metaspace()), model: { ignore_merges: true } },
  "added tokens of all kinds": {
    added_tokens: [
      token(0, "<unk>", { special: true, normalized: true }),
      token(1, "<s>", { special: true, normalized: true }),
      // Not rstrip beside "  ": Hugging Face would count white space that was taken along once more.
      token(2, "</s>", { special: true, lstrip: true }),
      token(1237, "the", { single_word: true }), // of the model, as the next one
      token(29142, "日", { lstrip: true }),
      token(32000, "<two words>", { normalized: true, rstrip: true }),
      token(32001, "  "),
    ],
  },
};
function spaceDecoder() {
  return replace({ String: "▁" }, " ");
}

/** What to change in claude, whose words are bytes. */
const ofBytes = {
  "prefix space": { pre_tokenizer: byteLevel({ add_prefix_space: true }) },
  "digits one by one": preTokenizers({ type: "Digits", individual_digits: true }, byteLevel()),
  "regex that is removed": preTokenizers(split({ Regex: "\\s+" }, "Removed"), byteLevel({ use_regex: false })),
  "what a regex leaves is removed": preTokenizers(split({ Regex: " ?\\p{L}+|\\p{N}" }, "Removed", true), byteLevel({ use_regex: false })),
  "regex merged with what is before": preTokenizers(split({ Regex: "[\\r\\n.,]" }, "MergedWithPrevious"), byteLevel()),
  "string merged with what is behind": preTokenizers(split({ String: " " }, "MergedWithNext"), byteLevel({ use_regex: false })),
  "regex, contiguous": preTokenizers(split({ Regex: "\\p{L}" }, "Contiguous"), byteLevel({ use_regex: false, add_prefix_space: true })),
  "punctuation": preTokenizers({ type: "Punctuation", behavior: "Isolated" }, byteLevel()),
  "whole words first": { normalizer: null, model: { ignore_merges: true } },
  "normalized tokens behind NFC": {
    normalizer: { type: "NFC" },
    added_tokens: [
      token(0, "<EOT>", { special: true }),
      token(65000, "cafe\u0301", { normalized: true, single_word: true }),
      token(65001, "<\u1eb9>", { normalized: true }),
      token(65002, "        ", { normalized: true }),
    ],
  },
};

function made(base, { model = {}, ...fields }) {
  return { ...base, ...fields, model: { ...base.model, ...model } };
}

for (const [name, variants] of [["llama2", ofCharacters], ["claude", ofBytes]]) {
  let base;
  before(() => {
    base = JSON.parse(readFileSync(join(modelFolder(name), "tokenizer.json"), "utf8"));
  });
  for (const [what, changes] of Object.entries(variants)) {
    test(`${name}: ${what} (seed ${seed})`, () => compareMade(new Random(seed), made(base, changes), strings));
  }
}
