// OpenAI's own client.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import OpenAI from "openai";

import { answers, documents, model, questions, serve } from "./served_model.mjs";

const messages = [{ role: "user", content: questions[0] }];

function chat(more = {}) {
  return { model, messages, documents, temperature: 0, max_tokens: 16, ...more };
}

function longAnswer(more = {}) {
  return { model, prompt: "The river", max_tokens: 3000, temperature: 0, ignore_eos: true, ...more };
}

describe("the openai client", () => {
  let server;
  let client;
  before(async () => {
    server = await serve();
    client = new OpenAI({ baseURL: server.baseURL, apiKey: "unused", maxRetries: 0 });
  });
  after(async () => assert.equal(await server.stop(), 0));

  test("lists the model", async () => {
    const listed = [];
    for await (const entry of client.models.list()) listed.push(entry.id);
    assert.deepEqual(listed, [model]);
    assert.equal((await client.models.retrieve(model)).id, model);
  });

  test("asks about documents, which are cached then in any order", async () => {
    const cold = await client.chat.completions.create(chat({ cache_salt: "order" }));
    assert.match(cold.choices[0].message.content, /Masa/);
    assert.equal(cold.choices[0].finish_reason, "stop");
    assert.equal(cold.usage.prompt_tokens_details.cached_tokens, 0);
    assert.deepEqual(cold.usage.documents.map((document) => [document.id, document.source]),
      [["a", "computed"], ["b", "computed"], ["c", "computed"]]);

    const warm = await client.chat.completions.create(
      chat({ cache_salt: "order", documents: documents.toReversed() }));
    assert.match(warm.choices[0].message.content, /Masa/);
    assert.deepEqual(warm.usage.documents.map((document) => [document.id, document.source]),
      [["c", "pool"], ["b", "pool"], ["a", "pool"]]);
    const tokens = warm.usage.documents.reduce((sum, document) => sum + document.tokens, 0);
    assert.ok(warm.usage.prompt_tokens_details.cached_tokens >= tokens);
    assert.equal(warm.usage.total_tokens, warm.usage.prompt_tokens + warm.usage.completion_tokens);
  });

  test("streams the same answer, with usage in the last chunk", async () => {
    const whole = await client.chat.completions.create(chat());
    const stream = await client.chat.completions.create(
      chat({ stream: true, stream_options: { include_usage: true } }));
    let text = "";
    let last;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      last = chunk;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.deepEqual(last.choices, []);
    assert.equal(last.usage.completion_tokens, whole.usage.completion_tokens);
    assert.ok(last.usage.prompt_tokens_details.cached_tokens > 0);
    assert.equal(last.usage.documents.length, documents.length);
  });

  test("puts a stream together with its own helper", async () => {
    const whole = await client.chat.completions.create(chat({ logprobs: true, top_logprobs: 2 }));
    const runner = client.chat.completions.stream(chat({ logprobs: true, top_logprobs: 2 }));
    let text = "";
    runner.on("content", (delta) => { text += delta; });
    const final = await runner.finalChatCompletion();
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(final.choices[0].message.content, text);
    assert.equal(final.choices[0].finish_reason, whole.choices[0].finish_reason);
    assert.deepEqual(final.choices[0].logprobs.content.map((entry) => entry.token),
      whole.choices[0].logprobs.content.map((entry) => entry.token));
  });

  test("takes up a conversation whose later turns bring documents", async () => {
    const turns = [
      ...messages,
      { role: "assistant", content: "Masa" },
      { role: "user", content: questions[2], documents: [documents[2]] },
    ];
    const answer = await client.chat.completions.create(
      chat({ messages: turns, documents: documents.slice(0, 2) }));
    assert.deepEqual(answer.usage.documents.map((document) => document.id), ["a", "b", "c"]);
    assert.equal(answer.choices[0].message.content, answers[2]);
  });

  test("completes texts, in several choices", async () => {
    const answer = await client.completions.create({
      ...longAnswer({ max_tokens: 6, n: 3, temperature: 1, seed: 7, logprobs: 1 }),
      documents: ["A bare text of a document. "],
    });
    assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1, 2]);
    for (const choice of answer.choices) {
      assert.equal(choice.finish_reason, "length");
      assert.equal(choice.logprobs.tokens.length, 6);
      assert.equal(choice.logprobs.tokens.join(""), choice.text);
    }
    assert.equal(answer.usage.completion_tokens, 18);
    assert.equal(answer.usage.documents.length, 1);
  });

  test("gets errors of the right class, with parameter and code", async () => {
    const refused = (call, type, status, param, code) =>
      assert.rejects(call, (error) => {
        assert.ok(error instanceof type, `${error}`);
        assert.deepEqual([error.status, error.param ?? "", error.code], [status, param, code]);
        assert.ok(error.message.length > 0);
        return true;
      });
    const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
    const create = (more) => client.chat.completions.create(chat(more));
    await refused(create({ tools }), OpenAI.BadRequestError, 400, "tools", "unsupported_field");
    await refused(create({ temperatur: 1 }), OpenAI.BadRequestError, 400, "temperatur", "unknown_field");
    await refused(create({ documents: [{ text: 1 }] }), OpenAI.BadRequestError, 400, "documents[0].text", null);
    await refused(create({ max_tokens: 1e9 }), OpenAI.BadRequestError, 400, "", "context_length_exceeded");
    await refused(create({ stream: true, model: "gpt-4o" }), OpenAI.NotFoundError, 404, "model", "model_not_found");
    await refused(client.embeddings.create({ model, input: "x" }), OpenAI.NotFoundError, 404, "", "unknown_url");
  });

  test("aborts in mid-stream, which ends the request at once", async () => {
    const before = await server.metric("anyslot_generated_tokens_total");
    const stream = await client.completions.create({ ...longAnswer(), stream: true });
    let chunks = 0;
    for await (const chunk of stream) {
      assert.ok(chunk.choices.length > 0);
      if (++chunks === 5) stream.controller.abort();
    }
    await server.idle();
    assert.ok((await server.metric("anyslot_generated_tokens_total")) < before + 2900);

    const signal = new AbortController();
    const whole = client.completions.create(longAnswer(), { signal: signal.signal });
    while ((await server.metric("anyslot_running_requests")) === 0);
    signal.abort();
    await assert.rejects(whole, OpenAI.APIUserAbortError);
    await server.idle();
    assert.match((await client.chat.completions.create(chat())).choices[0].message.content, /Masa/);
  });

  test("gets the same answers when many ask at once", async () => {
    const asked = Array.from({ length: 24 }, (_, i) => {
      const order = [0, 1, 2].map((at) => documents[(at + i) % 3]);
      return chat({
        documents: order,
        messages: [{ role: "user", content: questions[i % 3] }],
        stream: i % 2 === 0,
      });
    });
    const answerTo = async (body, asker) => {
      const answer = await asker.chat.completions.create(body);
      if (!body.stream) return answer.choices[0].message.content;
      let text = "";
      for await (const chunk of answer) text += chunk.choices[0]?.delta?.content ?? "";
      return text;
    };
    const alone = [];
    for (const body of asked) alone.push(await answerTo(body, client));
    const together = await Promise.all(asked.map((body) =>
      answerTo(body, new OpenAI({ baseURL: server.baseURL, apiKey: "unused" }))));
    assert.deepEqual(together, alone);
    assert.deepEqual(alone.slice(0, 3), answers);
  });
});

test("the openai client shows its key", async () => {
  const folder = await mkdtemp(join(tmpdir(), "anyslot-"));
  await writeFile(join(folder, "keys"), "alpha\nbeta\n");
  const server = await serve("--api-key-file", join(folder, "keys"));
  try {
    const as = (apiKey) => new OpenAI({ baseURL: server.baseURL, apiKey, maxRetries: 0 });
    await assert.rejects(as("gamma").chat.completions.create(chat()), (error) => {
      assert.ok(error instanceof OpenAI.AuthenticationError);
      assert.deepEqual([error.status, error.code], [401, "invalid_api_key"]);
      return true;
    });
    for (const key of ["alpha", "beta"]) {
      const answer = await as(key).chat.completions.create(chat());
      assert.equal(answer.usage.documents[0].source, "computed", `${key} shares with nobody`);
    }
    assert.equal((await as("alpha").chat.completions.create(chat())).usage.documents[0].source, "pool");
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});

test("the openai client waits and comes again when the queue is full", async () => {
  const server = await serve("--max-running-requests", "1", "--max-queue", "0");
  try {
    const client = new OpenAI({ baseURL: server.baseURL, apiKey: "unused", maxRetries: 0 });
    const busy = await client.completions.create({ ...longAnswer(), stream: true });
    await assert.rejects(client.chat.completions.create(chat()), (error) => {
      assert.ok(error instanceof OpenAI.RateLimitError);
      assert.deepEqual([error.status, error.code], [429, "queue_full"]);
      assert.equal(error.headers.get("retry-after"), "1");
      return true;
    });
    const patient = client.chat.completions.create(chat(), { maxRetries: 20 });
    busy.controller.abort();
    assert.match((await patient).choices[0].message.content, /Masa/);
  } finally {
    await server.stop();
  }
});

test("the openai client sees the end of a stream that a shutdown cuts off", async () => {
  const server = await serve("--grace-seconds", "0");
  const client = new OpenAI({ baseURL: server.baseURL, apiKey: "unused", maxRetries: 0 });
  const stream = await client.completions.create({ ...longAnswer(), stream: true });
  await assert.rejects(async () => {
    for await (const chunk of stream) if (chunk.choices) server.terminate();
  }, (error) => error instanceof OpenAI.APIError && error.code === "shutting_down");
  assert.equal(await server.stop(), 0);
});
