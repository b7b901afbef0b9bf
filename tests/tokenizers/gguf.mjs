// A tokenizer.json's tokenizer as the metadata of a GGUF file, laid out as llama.cpp's converter does it.

const [uint32, float32, bool, text, array] = [4, 6, 7, 8, 9]; // types of metadata
const types = { normal: 1, control: 3, userDefined: 4, unused: 5, byte: 6 };

const number = (value, bytes, write) => {
  const buffer = Buffer.alloc(bytes);
  buffer[write](value);
  return buffer;
};
const u32 = (value) => number(value, 4, "writeUInt32LE");
const u64 = (value) => number(BigInt(value), 8, "writeBigUInt64LE");
const f32 = (value) => number(value, 4, "writeFloatLE");
const string = (value) => {
  const bytes = Buffer.from(value, "utf8");
  return Buffer.concat([u64(bytes.length), bytes]);
};
const list = (type, values, write) => Buffer.concat([u32(array), u32(type), u64(values.length), ...values.map(write)]);

/** Of each token minus the number of the first merge that makes it; what none makes comes last. */
function scoresOf({ vocab, merges }, tokens) {
  const numbers = new Map();
  merges.forEach((merge, i) => {
    const made = typeof merge === "string" ? merge.replace(" ", "") : merge.join("");
    if (!numbers.has(made)) numbers.set(made, i);
  });
  return tokens.map((name) => (vocab[name] === undefined ? -1000 : -(numbers.get(name) ?? merges.length)));
}

function listsOf(file) {
  const tokens = [];
  const kinds = [];
  for (const [name, id] of Object.entries(file.model.vocab)) {
    tokens[id] = name;
    kinds[id] = /^<0x[0-9A-F]{2}>$/.test(name) ? types.byte : types.normal;
  }
  const scores = scoresOf(file.model, tokens);
  for (const { id, content, special } of file.added_tokens) {
    tokens[id] = special ? content : content.replaceAll("▁", " ");
    kinds[id] = special ? types.control : types.userDefined;
    scores[id] = -1000;
  }
  for (let id = 0; id < tokens.length; ++id) {
    if (kinds[id] !== undefined) continue;
    [tokens[id], kinds[id], scores[id]] = [`[PAD${id}]`, types.unused, -10000];
  }
  return { tokens, kinds, scores };
}

/** `fields`: what the tokenizer.json does not say, by key. */
export function ggufOf(file, fields) {
  const { tokens, kinds, scores } = listsOf(file);
  const values = {
    "tokenizer.ggml.tokens": list(text, tokens, string),
    "tokenizer.ggml.token_type": list(uint32, kinds, u32),
  };
  if (fields["tokenizer.ggml.model"] === "llama") {
    values["tokenizer.ggml.scores"] = list(float32, scores, f32);
  } else {
    const merges = file.model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" ")));
    values["tokenizer.ggml.merges"] = list(text, merges, string);
  }
  for (const [key, value] of Object.entries(fields)) {
    values[key] = {
      string: () => Buffer.concat([u32(text), string(value)]),
      number: () => Buffer.concat([u32(uint32), u32(value)]),
      boolean: () => Buffer.concat([u32(bool), Buffer.from([value ? 1 : 0])]),
    }[typeof value]();
  }
  const metadata = Object.entries(values).flatMap(([key, value]) => [string(key), value]);
  return Buffer.concat([Buffer.from("GGUF"), u32(3), u64(0), u64(Object.keys(values).length), ...metadata]);
}
