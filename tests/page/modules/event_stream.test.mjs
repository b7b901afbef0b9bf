import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStream } from "../../../www/page/event_stream.mjs";

const text = 'data: {"a":1}\n\n: a comment\n\ndata: one\ndata: two\n\nevent: x\r\ndata:[DONE]\r\n\r\n';
const events = ['{"a":1}', "one\ntwo", "[DONE]"];

test("events are the same however the stream is cut", () => {
  for (let size = 1; size <= text.length; ++size) {
    const stream = new EventStream();
    const got = [];
    for (let at = 0; at < text.length; at += size) got.push(...stream.push(text.slice(at, at + size)));
    assert.deepEqual(got, events, `in pieces of ${size}`);
  }
});

test("what has no end yet is no event", () => {
  assert.deepEqual(new EventStream().push("data: half"), []);
});
