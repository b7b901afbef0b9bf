// Anthropic's own client.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import { answers, documents, model, questions, serve } from "./served_model.mjs";

const asDocument = ({ title, text }, more = {}) => ({
  type: "document", source: { type: "text", media_type: "text/plain", data: text }, title, ...more });
const asSearchResult = ({ id, title, text }, more = {}) => ({
  type: "search_result", source: id, title, content: [{ type: "text", text }], ...more });

function message(more = {}, blocks = documents.map((document) => asDocument(document))) {
  return {
    model, max_tokens: 16, temperature: 0,
    messages: [{ role: "user", content: [...blocks, { type: "text", text: questions[0] }] }],
    ...more,
  };
}

function longAnswer(more = {}) {
  return { model, max_tokens: 3000, temperature: 0, ignore_eos: true, messages: [{ role: "user", content: "The river" }], ...more };
}

const allInput = (usage) => usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;

describe("the Anthropic client", () => {
  let server;
  let client;
  before(async () => {
    server = await serve();
    client = new Anthropic({ baseURL: server.url, apiKey: "unused", maxRetries: 0 });
  });
  after(async () => assert.equal(await server.stop(), 0));

  test("asks about documents, which are cached then in any order", async () => {
    const salt = { cache_salt: "order" };
    const cold = await client.messages.create(message(salt));
    assert.equal(cold.content[0].text, answers[0]);
    assert.equal(cold.stop_reason, "end_turn");
    assert.equal(cold.usage.cache_read_input_tokens, 0);
    assert.ok(cold.usage.cache_creation_input_tokens > 0);

    const reversed = documents.toReversed().map((document) => asDocument(document));
    const warm = await client.messages.create(message(salt, reversed));
    assert.equal(warm.content[0].text, answers[0]);
    assert.equal(warm.usage.cache_creation_input_tokens, 0);
    assert.ok(warm.usage.cache_read_input_tokens >= cold.usage.cache_creation_input_tokens);
    assert.equal(allInput(warm.usage), allInput(cold.usage));
  });

  test("brings documents as search results", async () => {
    const blocks = documents.map((document) => asSearchResult(document));
    const answer = await client.messages.create(message({}, blocks));
    assert.equal(answer.content[0].text, answers[0]);
    assert.deepEqual(answer.usage.documents.map((document) => document.id), ["a", "b", "c"]);
  });

  test("streams the same answer", async () => {
    const types = [];
    let text = "";
    for await (const event of await client.messages.create(message({ stream: true }))) {
      if (types.at(-1) !== event.type) types.push(event.type);
      if (event.type === "content_block_delta") text += event.delta.text;
    }
    assert.equal(text, answers[0]);
    assert.deepEqual(types, ["message_start", "content_block_start", "content_block_delta", "content_block_stop",
      "message_delta", "message_stop"]);
  });

  test("puts a stream together with its own helper", async () => {
    const whole = await client.messages.create(message());
    const stream = client.messages.stream(message());
    let text = "";
    stream.on("text", (delta) => { text += delta; });
    const final = await stream.finalMessage();
    assert.equal(text, whole.content[0].text);
    assert.deepEqual(final.content[0].text, text);
    assert.equal(final.stop_reason, whole.stop_reason);
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
    assert.equal(allInput(final.usage), allInput(whole.usage));
    assert.ok(final.usage.cache_read_input_tokens > 0);
    assert.equal(final.usage.documents.length, documents.length);
  });

  test("keeps documents with cache_control", async () => {
    const kept = [asDocument(documents[0]), asDocument(documents[1], { cache_control: { type: "ephemeral", ttl: "1h" } }),
      asDocument(documents[2])];
    await client.messages.create(message({ cache_salt: "kept" }, kept));
    const { data } = await (await fetch(`${server.baseURL}/documents?cache_salt=kept`)).json();
    assert.equal(data.filter((entry) => entry.pinned).length, 2);
  });

  test("takes up a conversation with a system text and documents in later turns", async () => {
    const answer = await client.messages.create({
      model, max_tokens: 16, temperature: 0,
      system: [{ type: "text", text: "Answer from the documents.", cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: [asDocument(documents[0]), { type: "text", text: questions[0] }] },
        { role: "assistant", content: [{ type: "text", text: answers[0] }] },
        { role: "user", content: [asDocument(documents[2]), { type: "text", text: questions[2] }] },
      ],
    });
    assert.equal(answer.usage.documents.length, 2);
    assert.equal(answer.content[0].text, answers[2]);
  });

  test("counts the tokens of a prompt", async () => {
    const { max_tokens, temperature, ...prompt } = message();
    assert.equal((await client.messages.countTokens(prompt)).input_tokens, allInput((await client.messages.create(message())).usage));
  });

  test("stops at stop sequences and at max_tokens", async () => {
    const stopped = await client.messages.create(message({ stop_sequences: ["asa"] }));
    assert.deepEqual([stopped.stop_reason, stopped.stop_sequence, stopped.content[0].text], ["stop_sequence", "asa", "M"]);
    const short = await client.messages.create(message({ max_tokens: 1 }));
    assert.deepEqual([short.stop_reason, short.stop_sequence, short.usage.output_tokens], ["max_tokens", null, 1]);
  });

  test("gets errors of the right class, with a reason", async () => {
    const refused = (call, type, status, kind, reason) =>
      assert.rejects(call, (error) => {
        assert.ok(error instanceof type, `${error}`);
        assert.deepEqual([error.status, error.error.type, error.error.error.type], [status, "error", kind]);
        assert.match(error.error.error.message, reason);
        return true;
      });
    const create = (more, blocks) => client.messages.create(message(more, blocks));
    const bad = Anthropic.BadRequestError;
    const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AAAA" } };
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    await refused(create({}, [pdf]), bad, 400, "invalid_request_error", /source\.type.*PDF/);
    await refused(create({}, [image]), bad, 400, "invalid_request_error", /content\[0\]\.type.*image/);
    await refused(create({}, [asDocument(documents[0], { citations: { enabled: true } })]), bad, 400,
      "invalid_request_error", /citations.*not supported/);
    await refused(create({ tools: [{ name: "f", input_schema: { type: "object" } }] }), bad, 400,
      "invalid_request_error", /tools.*not supported/);
    await refused(create({ model: "claude" }), Anthropic.NotFoundError, 404, "not_found_error", /claude/);
    await refused(create({ stream: true, model: "claude" }), Anthropic.NotFoundError, 404, "not_found_error", /claude/);
  });

  test("aborts in mid-stream, which ends the request at once", async () => {
    const before = await server.metric("anyslot_generated_tokens_total");
    const stream = client.messages.stream(longAnswer());
    const aborted = assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
    stream.once("text", () => stream.abort());
    await aborted;
    await server.idle();
    assert.ok((await server.metric("anyslot_generated_tokens_total")) < before + 2900);
    assert.equal((await client.messages.create(message())).content[0].text, answers[0]);
  });
});

test("the Anthropic client shows its key", async () => {
  const folder = await mkdtemp(join(tmpdir(), "anyslot-"));
  await writeFile(join(folder, "keys"), "alpha\n");
  const server = await serve("--api-key-file", join(folder, "keys"));
  try {
    const as = (apiKey) => new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 });
    await assert.rejects(as("gamma").messages.create(message()), (error) => {
      assert.ok(error instanceof Anthropic.AuthenticationError, `${error}`);
      assert.equal(error.error.error.type, "authentication_error");
      return true;
    });
    assert.equal((await as("alpha").messages.create(message())).content[0].text, answers[0]);
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});

test("the Anthropic client waits and comes again when the queue is full", async () => {
  const server = await serve("--max-running-requests", "1", "--max-queue", "0");
  try {
    const client = new Anthropic({ baseURL: server.url, apiKey: "unused", maxRetries: 0 });
    const busy = client.messages.stream(longAnswer());
    busy.on("error", () => {});
    busy.on("abort", () => {});
    await new Promise((resolve) => busy.once("text", resolve));
    await assert.rejects(client.messages.create(message()), (error) => {
      assert.ok(error instanceof Anthropic.RateLimitError);
      assert.equal(error.error.error.type, "rate_limit_error");
      return true;
    });
    const patient = client.messages.create(message(), { maxRetries: 20 });
    busy.abort();
    assert.equal((await patient).content[0].text, answers[0]);
  } finally {
    await server.stop();
  }
});

test("the Anthropic client sees the end of a stream that a shutdown cuts off", async () => {
  const server = await serve("--grace-seconds", "0");
  const client = new Anthropic({ baseURL: server.url, apiKey: "unused", maxRetries: 0 });
  const stream = await client.messages.create(longAnswer({ stream: true }));
  await assert.rejects(async () => {
    for await (const event of stream) if (event.type === "content_block_delta") server.terminate();
  }, (error) => error instanceof Anthropic.APIError && error.error.error.type === "overloaded_error");
  assert.equal(await server.stop(), 0);
});
