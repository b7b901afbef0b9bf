// The tokenizers of real models: the same ids and the same text as Hugging Face's implementation gives.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { compare } from "./compare.mjs";
import { Random, seed } from "./random.mjs";
import { modelFolder } from "./reference.mjs";

const strings = 14_000; // of each model

for (const name of ["llama2", "llama3_1", "qwen3", "gemma3", "deepseek_v3", "claude"]) {
  test(`${name} (seed ${seed})`, () => {
    const folder = modelFolder(name);
    return compare(new Random(seed), folder, readFileSync(join(folder, "tokenizer.json"), "utf8"), strings);
  });
}
