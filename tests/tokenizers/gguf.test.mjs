// The tokenizers of real models out of GGUF files: the same ids and the same text as Hugging Face's implementation gives for the
// tokenizer.json.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { compare } from "./compare.mjs";
import { ggufOf } from "./gguf.mjs";
import { Random, seed } from "./random.mjs";
import { inTemporaryFolder, modelFolder } from "./reference.mjs";

const strings = 3000; // of each model

const models = {
  llama2: { model: "llama", bos_token_id: 1, eos_token_id: 2, unknown_token_id: 0 },
  gemma3: { model: "llama", bos_token_id: 2, unknown_token_id: 3, add_space_prefix: false },
  llama3_1: { model: "gpt2", pre: "llama-bpe", bos_token_id: 128000 },
  qwen3: { model: "gpt2", pre: "qwen2" },
};

// Converters write Gemma's added runs of ▁ as runs of spaces, so a GGUF file has no token for those that are written with a ▁.
const excuses = { gemma3: (text) => /▁[▁ ]| ▁/.test(text) };

for (const [name, fields] of Object.entries(models)) {
  test(`${name} (seed ${seed})`, () =>
    inTemporaryFolder((folder) => {
      const json = readFileSync(join(modelFolder(name), "tokenizer.json"), "utf8");
      const path = join(folder, "model.gguf");
      const keys = Object.fromEntries(Object.entries(fields).map(([key, value]) => [`tokenizer.ggml.${key}`, value]));
      writeFileSync(path, ggufOf(JSON.parse(json), keys));
      return compare(new Random(seed), path, json, strings, excuses[name]);
    }));
}
