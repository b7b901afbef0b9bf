// Strings of every kind that tokenizers trip over.
const words = `the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one
you were all her she there would their we him been has when who will no more if out so said what up its about than into them can
only other time new some could these two may first then do any like my now over such our man me even most made after also did many
off before must well back through years where much your way down should because long each just state those people too mr how little
good world make very year still see own work men day get here old life both between being under three never know same last another
while us might great go come since against right came take used himself few house use place during high without again home around
small however found Mrs thought went say part once general upon school every don't can't I'll we've it's they're He'd`.split(/\s+/);
const identifiers = ["i", "count", "user_id", "getValue", "HTTPServer", "__init__", "x1", "self", "kMaxSize", "snake_case_name"];
const keywords = ["def", "return", "if", "else:", "for", "while", "const", "auto", "#include", "std::vector<int>", "=>", "function"];
const operators = ["==", "!=", "+=", "->", "::", "&&", "||", "<<=", "**", "//", "/*", "*/", "...", "{", "}", "(", ")", "[]", ";", ","];
const spaces = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2003", "\u200b", "\u2028", "\u0085", "\v", "\f", "    ", "        "];
const emoji = ["🙂", "👩‍👩‍👧‍👦", "👨🏽‍🚀", "🏳️‍🌈", "🇩🇪", "🇯🇵🇺🇸", "1️⃣", "#️⃣", "❤️", "❤", "✊🏿", "🧑🏻‍❤️‍🧑🏾", "☺︎", "🫠", "👍", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "⌚"];
const marks = ["\u0300", "\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u05b0", "\u0651", "\u064e", "\u093c", "\u09be", "\u3099", "\u20dd", "\u0f71", "\u1dce", "\ufe20"];
const bases = ["a", "e", "o", "A", "ü", "ç", "ẛ", "ﬁ", "①", "Ａ", "ｶ", "ﾞ", "가", "ᄀ", "ᅡ", "ᆨ", "が", "か", "क", "ক", "ا", "ש", "ά", "İ", "ß", "Σ", "ﷺ", "Ⅷ", "½", "Å", "Ω", "豈"];
const pieces = ["▁", "▁▁", "<0x0A>", "<0xE6>", "Ġ", "Ċ", "<s>", "[INST]", "##", "</s>", "<unk>", "▁the"];
// First and last characters of scripts and blocks that all the libraries at hand know.
const ranges = [
  [0x20, 0x7e], [0x20, 0x7e], [0xa0, 0x24f], [0x250, 0x2ff], [0x370, 0x3ff], [0x400, 0x52f], [0x531, 0x556], [0x5d0, 0x5ea], [0x600, 0x6ff],
  [0x900, 0x97f], [0x980, 0x9b2], [0xb85, 0xbb9], [0xe01, 0xe3a], [0xf00, 0xf47], [0x1000, 0x109f], [0x10a0, 0x10c5], [0x1100, 0x11ff],
  [0x1200, 0x1248], [0x13a0, 0x13f5], [0x1780, 0x17dd], [0x1e00, 0x1eff], [0x1f00, 0x1f15], [0x2000, 0x206f], [0x2070, 0x209c],
  [0x20a0, 0x20bf], [0x2100, 0x218b], [0x2190, 0x23ff], [0x2460, 0x24ff], [0x2500, 0x27bf], [0x2900, 0x2aff], [0x3000, 0x303f],
  [0x3041, 0x3096], [0x30a0, 0x30ff], [0x3131, 0x318e], [0x3200, 0x32fe], [0x4e00, 0x9fa5], [0x4e00, 0x9fa5], [0xac00, 0xd7a3],
  [0xe000, 0xe0ff], [0xf900, 0xfa6d], [0xfb00, 0xfb06], [0xfe00, 0xfe0f], [0xfe50, 0xfe6b], [0xff01, 0xffdc], [0x10000, 0x1004d],
  [0x10300, 0x10323], [0x1d400, 0x1d454], [0x1d510, 0x1d514], [0x1f300, 0x1f5ff], [0x1f600, 0x1f64f], [0x1f680, 0x1f6c5], [0x20000, 0x20100],
];

const repeat = (random, least, most, make) => {
  let text = "";
  for (let n = least + random.below(most - least + 1); n > 0; --n) text += make();
  return text;
};
const character = (random) => {
  const [first, last] = random.of(ranges);
  return String.fromCodePoint(first + random.below(last - first + 1));
};

const kinds = {
  english: (random) =>
    repeat(random, 1, 30, () => {
      let word = random.of(words);
      if (random.chance(10)) word = word[0].toUpperCase() + word.slice(1);
      return word + random.of([" ", " ", " ", " ", " ", ", ", ". ", "\n", "? ", " - ", "; ", "  "]);
    }),
  unicode: (random) => repeat(random, 0, 30, () => character(random)),
  sameScript: (random) => {
    const [first, last] = random.of(ranges);
    return repeat(random, 1, 40, () => (random.chance(12) ? " " : String.fromCodePoint(first + random.below(last - first + 1))));
  },
  code: (random) =>
    repeat(random, 1, 6, () => {
      const line = repeat(random, 1, 7, () => random.of(random.of([identifiers, keywords, operators])) + random.of(["", " "]));
      return " ".repeat(4 * random.below(5)) + line + random.of(["\n", "\r\n", "\n\n", ";\n", "\t// x\n"]);
    }),
  numbers: (random) => repeat(random, 1, 10, () => repeat(random, 1, 9, () => String(random.below(10))) + random.of(["", " ", ".", ",", "e-", "٣", "½", "Ⅷ"])),
  emoji: (random) => repeat(random, 1, 10, () => random.of(emoji) + random.of(["", "", " ", "!", "\u200d", "\ufe0f"])),
  marks: (random) => repeat(random, 1, 8, () => random.of(bases) + repeat(random, 0, 4, () => random.of(marks))),
  space: (random) => repeat(random, 1, 12, () => random.of(spaces) + random.of(["", "", "a", "\n", ".", "日"])),
  pieces: (random) => repeat(random, 1, 10, () => random.of(pieces) + random.of(["", " ", "a", "▁"])),
  longWord: (random) => {
    const alphabet = random.of(["ab", "abcdefghijklmnopqrstuvwxyz", "=", "-", "ـ", "日本語", "0123456789", " ", "\n", "▁", "a▁", "🙂"]);
    const letters = [...alphabet];
    return repeat(random, 60, random.chance(3) ? 6000 : 200, () => random.of(letters));
  },
  everything: (random) => repeat(random, 2, 5, () => string(random)),
};
const names = Object.keys(kinds);

/** One string of a random kind. */
export function string(random) {
  return kinds[random.chance(20) ? "english" : random.of(names)](random);
}

/** A string with some of these tokens in it. */
export function withTokens(random, tokens) {
  return repeat(random, 1, 4, () => random.of([string(random).slice(0, 20), "", " ", "a", "\n"]).toWellFormed() + random.of(tokens)) + random.of(["", " x", "é"]);
}
