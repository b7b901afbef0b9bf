// Asks Hugging Face's tokenizer and ours the same, and fails with the first differences.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { Reference, inTemporaryFolder, ours } from "./reference.mjs";
import { string, withTokens } from "./strings.mjs";

const shown = 5;

function assertSame(what, questions, expected, got) {
  const wrong = questions.flatMap((question, i) => (JSON.stringify(expected[i]) === JSON.stringify(got[i]) ? [] : [i]));
  const line = (i) =>
    `  ${JSON.stringify(questions[i]).slice(0, 400)}\n    expected ${JSON.stringify(expected[i]).slice(0, 600)}\n    got      ${JSON.stringify(got[i]).slice(0, 600)}`;
  assert.equal(wrong.length, 0, `${what}: ${wrong.length} of ${questions.length} differ\n${wrong.slice(0, shown).map(line).join("\n")}`);
}

/** Lists of ids: whole ones, ones cut out of a longer one, so that characters break, and ones of random tokens. */
function listsOfIds(random, encoded, vocabSize, bytes) {
  return encoded.map((ids) => {
    const kind = random.below(4);
    if (kind === 0) return ids;
    if (kind === 1) return ids.slice(random.below(ids.length), random.below(ids.length) + 1);
    const token = () => (bytes.length > 0 && random.chance(60) ? random.of(bytes) : random.below(vocabSize));
    if (kind === 2) return Array.from({ length: random.below(12) }, token);
    return ids.flatMap((id) => (random.chance(15) ? [id, token()] : [id]));
  });
}

/**
 * Compares `count` strings, with every added token among them, for a tokenizer.json and the model that has it: a folder, or a GGUF
 * file that says the same.
 */
export async function compare(random, model, json, count, excuse = () => false) {
  const file = JSON.parse(json);
  const reference = new Reference(json);
  const tokens = (file.added_tokens ?? []).map((token) => token.content).filter((content) => !excuse(content));
  const texts = tokens.map((token) => random.of(["", "a ", "é"]) + token + random.of(["", " b", "日"])).slice(0, count / 4);
  while (texts.length < count) {
    const text = tokens.length > 0 && random.chance(15) ? withTokens(random, tokens) : string(random);
    if (!excuse(text)) texts.push(text);
  }
  const encoded = await reference.encode(texts);
  const requests = texts.map((text) => ["encode", text]);

  const names = Object.entries(file.model.vocab);
  const bytes = names.filter(([name]) => /^<0x..>$/.test(name) || [...name].length === 1).map(([, id]) => id);
  const lists = listsOfIds(random, encoded, names.length, bytes);
  const decodings = [];
  for (const skip of [true, false]) {
    const half = lists.filter((_, i) => (i % 2 === 0) === skip);
    const decoded = await reference.decode(half, skip);
    half.forEach((ids, i) => decodings.push([["decode", ids, skip], [decoded[i], decoded[i]]]));
  }
  const got = ours(model, [...requests, ...decodings.map(([request]) => request)]);
  assertSame("encoding", texts, encoded, got.slice(0, texts.length));
  assertSame("decoding (whole, streamed)", decodings.map(([request]) => request), decodings.map(([, text]) => text), got.slice(texts.length));
}

/** The same for a tokenizer.json that is made up. */
export function compareMade(random, file, count, excuse) {
  return inTemporaryFolder((folder) => {
    const json = JSON.stringify(file);
    writeFileSync(join(folder, "tokenizer.json"), json);
    return compare(random, folder, json, count, excuse);
  });
}
