// Chat templates of real models: the same text as Hugging Face's Jinja gives, and no special token out of what people write.
import { Template } from "@huggingface/jinja";
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { Random, seed } from "./random.mjs";
import { inTemporaryFolder, modelFolder, ours } from "./reference.mjs";
import { string } from "./strings.mjs";

const conversations = 150; // with each template
const unable = process.env.ANYSLOT_CHAT_TEMPLATES ? false : "this build renders no chat templates";

const name = (token) => (typeof token === "string" ? token : (token?.content ?? ""));

function readModel(folder) {
  const config = JSON.parse(readFileSync(join(folder, "tokenizer_config.json"), "utf8"));
  const { added_tokens: added } = JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8"));
  return {
    template: config.chat_template,
    tokens: { bos_token: name(config.bos_token), eos_token: name(config.eos_token) },
    special: new Map(added.filter((token) => token.special).map((token) => [token.id, token.content])),
  };
}

/** What a person may write: never empty, and nothing at its ends that a template may cut. */
function content(random, special) {
  let text = `${string(random).slice(0, 80)}${random.chance(50) ? random.of(special) : ""}${string(random).slice(0, 40)}`.toWellFormed();
  text = text.replaceAll("</think>", "");
  return `x${text}x`;
}

function conversation(random, special, withDocuments) {
  const messages = random.chance(50) ? [{ role: "system", content: content(random, special) }] : [];
  for (let turns = random.below(3); turns > 0; --turns) {
    messages.push({ role: "user", content: content(random, special) }, { role: "assistant", content: content(random, special) });
  }
  messages.push({ role: "user", content: content(random, special) });
  const documents = Array.from({ length: withDocuments ? 1 + random.below(3) : 0 }, () => ({
    title: content(random, special),
    text: content(random, special),
  }));
  return { messages, documents };
}

const plain = ({ messages, documents }) => ({
  messages: messages.map(({ role }) => ({ role, content: "x" })),
  documents: documents.map(() => ({ title: "x", text: "x" })),
});

const request = ({ messages, documents }) => ["chat", messages, documents];

function check(folder, model, withDocuments) {
  const random = new Random(seed);
  const special = [...model.special.values()];
  const asked = Array.from({ length: conversations }, () => conversation(random, special, withDocuments));
  const template = new Template(model.template);
  const answers = ours(folder, [...asked.map(request), ...asked.map((one) => request(plain(one)))]);
  asked.forEach((one, i) => {
    const expected = template.render({
      ...one,
      ...model.tokens,
      add_generation_prompt: true,
      documents: withDocuments ? one.documents : undefined,
    });
    const got = answers[i];
    assert.equal(got.error, undefined, `${got.error}\n${JSON.stringify(one)}`);
    assert.equal(got.map((segment) => segment.text).join(""), expected, JSON.stringify(one));
    assert.equal(got.filter((segment) => segment.document).length, one.documents.length);
    const specialOf = (segments) => segments.map(({ ids }) => ids.filter((id) => model.special.has(id)));
    assert.deepEqual(specialOf(got), specialOf(answers[conversations + i]), `a special token out of content: ${JSON.stringify(one)}`);
  });
}

describe(`chat templates (seed ${seed})`, { skip: unable }, () => {
  for (const model of ["llama3_1", "qwen3", "gemma3", "deepseek_v3"]) {
    test(model, () => check(modelFolder(model), readModel(modelFolder(model)), false));
  }

  // None of those places documents; these are of the two forms that models have which do.
  const withDocuments = {
    "documents in a turn of their own": `{{ bos_token }}{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% else %}{% set rest = messages %}{% endif %}{% if documents %}<|im_start|>documents
{%- for document in documents %}

Document {{ loop.index0 }}
Title: {{ document['title'] }}
{{ document.text }}{% if not loop.last %}

{% endif %}{% endfor %}<|im_end|>
{% endif %}{% for message in rest %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`,
    "results with macros and a namespace": `{%- macro result(document, index) -%}
<results>Document: {{ index }}
title: {{ document.title }}
text: {{ document.text }}</results>
{%- endmacro -%}
{%- set ns = namespace(count=0) -%}
{%- for message in messages -%}
{%- if message.role == 'user' and loop.last -%}
{%- for document in documents -%}{{ result(document, ns.count) }}{% set ns.count = ns.count + 1 %}{%- endfor -%}
{%- endif -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' }}
{%- endfor -%}
{{ '<|im_start|>assistant\\n' if add_generation_prompt else '' }}`,
  };
  for (const [what, template] of Object.entries(withDocuments)) {
    test(what, () =>
      inTemporaryFolder((folder) => {
        const config = JSON.parse(readFileSync(join(modelFolder("qwen3"), "tokenizer_config.json"), "utf8"));
        copyFileSync(join(modelFolder("qwen3"), "tokenizer.json"), join(folder, "tokenizer.json"));
        writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify({ ...config, chat_template: template }));
        check(folder, readModel(folder), true);
      }));
  }
});
