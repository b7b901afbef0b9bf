// LangChain.js.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatOpenAI, OpenAI } from "@langchain/openai";

import { answers, documents, model, questions, serve } from "./served_model.mjs";

describe("LangChain.js", () => {
  let server;
  before(async () => { server = await serve(); });
  after(async () => assert.equal(await server.stop(), 0));

  const options = (modelKwargs, more) => ({
    model,
    modelKwargs,
    apiKey: "unused",
    temperature: 0,
    maxTokens: 16,
    maxRetries: 0,
    configuration: { baseURL: server.baseURL },
    ...more,
  });
  const chat = (modelKwargs = { documents }, more = {}) => new ChatOpenAI(options(modelKwargs, more));

  test("asks about documents and tells what was cached", async () => {
    const salted = { documents, cache_salt: "langchain" };
    const cold = await chat(salted).invoke([new HumanMessage(questions[0])]);
    assert.match(cold.content, /Masa/);
    assert.equal(cold.usage_metadata.input_token_details.cache_read, 0);
    const warm = await chat({ ...salted, documents: documents.toReversed() }).invoke([new HumanMessage(questions[0])]);
    assert.match(warm.content, /Masa/);
    assert.ok(warm.usage_metadata.input_token_details.cache_read > 0);
    assert.equal(warm.usage_metadata.total_tokens,
      warm.usage_metadata.input_tokens + warm.usage_metadata.output_tokens);
    assert.equal(warm.response_metadata.finish_reason, "stop");
  });

  test("streams the same answer", async () => {
    const whole = await chat().invoke(questions[0]);
    let gathered;
    for await (const chunk of await chat().stream(questions[0])) {
      gathered = gathered === undefined ? chunk : gathered.concat(chunk);
    }
    assert.equal(gathered.content, whole.content);
    assert.equal(gathered.usage_metadata.output_tokens, whole.usage_metadata.output_tokens);
    assert.ok(gathered.usage_metadata.input_token_details.cache_read > 0);
  });

  test("runs a chain over several questions at once", async () => {
    const prompt = ChatPromptTemplate.fromMessages([
      new SystemMessage("Answer in one word."),
      ["human", "{question}"],
    ]);
    const chain = prompt.pipe(chat()).pipe(new StringOutputParser());
    const given = await chain.batch(questions.map((question) => ({ question })));
    assert.deepEqual(given, answers);
  });

  test("takes up a conversation", async () => {
    const turns = [new HumanMessage(questions[0]), new AIMessage("Masa"), new HumanMessage(questions[1])];
    const first = await chat().invoke(turns.slice(0, 1));
    const later = await chat().invoke(turns);
    assert.ok(later.usage_metadata.input_tokens > first.usage_metadata.input_tokens);
    assert.equal(later.content, answers[1]);
  });

  test("completes texts", async () => {
    const whole = await new OpenAI(options({ documents: ["A bare text. "], ignore_eos: true })).invoke("The river");
    let text = "";
    for await (const piece of await new OpenAI(
      options({ documents: ["A bare text. "], ignore_eos: true })).stream("The river")) text += piece;
    assert.ok(whole.length > 0);
    assert.equal(text, whole);
  });

  test("passes errors on", async () => {
    await assert.rejects(chat({ documents, no_such_field: 1 }).invoke(questions[0]),
      (error) => error.status === 400 && error.param === "no_such_field");
    await assert.rejects(chat({ documents }, { model: "gpt-4o" }).invoke(questions[0]),
      (error) => error.status === 404 && error.code === "model_not_found");
    await assert.rejects(chat({ documents }, { maxTokens: 1e9 }).stream(questions[0]),
      (error) => error.status === 400);
  });

  test("aborts in mid-stream", async () => {
    const before = await server.metric("anyslot_generated_tokens_total");
    const signal = new AbortController();
    const stream = await chat({ documents, ignore_eos: true }, { maxTokens: 3000 })
      .stream(questions[0], { signal: signal.signal });
    await assert.rejects(async () => {
      for await (const chunk of stream) if (chunk.content !== "") signal.abort();
    });
    await server.idle();
    assert.ok((await server.metric("anyslot_generated_tokens_total")) < before + 2900);
  });
});
