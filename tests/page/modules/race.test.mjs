import assert from "node:assert/strict";
import { test } from "node:test";
import { newSalt, runRace } from "../../../www/page/race.mjs";

const [a, b] = [{ letter: "A", hue: 1, title: "One", text: "First." }, { letter: "B", hue: 2, title: "", text: "Second." }];
const setup = {
  model: "m", question: "Which?", documents: [b, a], before: [a, b], start: "warm", methods: ["lazy", "prefix"], maxTokens: 64,
};

/** Answers at once, and keeps what was asked. */
function fakeServer() {
  const asked = [];
  const active = { now: 0, most: 0 };
  const ask = async (body, onPiece) => {
    asked.push(body);
    active.most = Math.max(active.most, ++active.now);
    await new Promise(setImmediate);
    --active.now;
    const piece = { at: 5, text: `${body.method} says` };
    onPiece(piece);
    const documents = body.documents.map((_, index) => ({ index, id: null, tokens: 10, cached_tokens: index, source: "pool" }));
    const usage = { prompt_tokens: 50, prompt_tokens_details: { cached_tokens: 20 }, documents };
    return { firstTokenMs: 5, totalMs: 7, pieces: [piece], usage };
  };
  return { ask, asked, active };
}

async function raceOn(server, changes = {}) {
  const stages = [];
  const pieces = [];
  const race = await runRace({ ...setup, ...changes }, {
    ask: server.ask, salt: "s", onStage: (stage) => stages.push(stage), onPiece: (lane, { text }) => pieces.push([lane, text]),
  });
  return { race, stages, pieces };
}

test("both methods read the old order first, then each is measured on the new one, never two at once", async () => {
  const server = fakeServer();
  const { race, stages, pieces } = await raceOn(server);
  const told = server.asked.map(({ method, max_tokens, documents }) => [method, max_tokens, documents.map(({ text }) => text)]);
  assert.deepEqual(told, [
    ["lazy", 1, ["First.", "Second."]], ["prefix", 1, ["First.", "Second."]],
    ["lazy", 64, ["Second.", "First."]], ["prefix", 64, ["Second.", "First."]],
  ]);
  assert.equal(server.active.most, 1);
  assert.deepEqual(stages.map(({ stage, lane }) => `${stage} ${lane}`), ["warming 0", "warming 1", "running 0", "running 1"]);
  assert.deepEqual(pieces, [[0, "lazy says"], [1, "prefix says"]]);
  assert.deepEqual(race.runs.map(({ answer }) => answer), ["lazy says", "prefix says"]);
  assert.deepEqual(race.runs[0].documents.map(({ letter, cached }) => [letter, cached]), [["B", 0], ["A", 1]]);
});

test("a cold race measures only", async () => {
  const server = fakeServer();
  await raceOn(server, { start: "cold" });
  assert.deepEqual(server.asked.map(({ max_tokens }) => max_tokens), [64, 64]);
});

test("no lane finds what another one left in the cache", async () => {
  const server = fakeServer();
  await raceOn(server, { methods: ["lazy", "lazy"] });
  const salts = server.asked.map(({ cache_salt }) => cache_salt);
  assert.notEqual(salts[0], salts[1]);
  assert.deepEqual(salts.slice(2), salts.slice(0, 2), "but it finds what it read itself");
  assert.notEqual(newSalt(), newSalt());
});

test("lanes are asked the same thing but for the method", async () => {
  const server = fakeServer();
  await raceOn(server, { start: "cold" });
  const [one, other] = server.asked.map(({ method, cache_salt, ...rest }) => rest);
  assert.deepEqual(one, other);
  assert.equal(one.temperature, 0);
  assert.deepEqual(one.documents, [{ text: "Second." }, { title: "One", text: "First." }]);
});

test("a refusal ends the race", async () => {
  const refused = new Error("refused");
  await assert.rejects(raceOn({ ask: async () => { throw refused; } }), refused);
});
