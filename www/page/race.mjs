// A race: the same question about the same documents, once per method. The lanes run one after the other, so that neither
// slows the other, and no lane shares a cache with another one.

/** How many tokens an answer may have that only fills the cache. */
const warmUpTokens = 1;

function bodyOf({ model, question, documents, method, maxTokens, salt }) {
  return {
    model,
    method,
    cache_salt: salt,
    temperature: 0,
    max_tokens: maxTokens,
    messages: [{ role: "user", content: question }],
    documents: documents.map(({ title, text }) => (title ? { title, text } : { text })),
  };
}

/** A run as it is kept: what was measured, and of each document how much of it was cached. */
function runOf(measured, method, documents) {
  return {
    method,
    firstTokenMs: measured.firstTokenMs,
    totalMs: measured.totalMs,
    pieces: measured.pieces,
    answer: measured.pieces.map(({ text }) => text).join(""),
    promptTokens: measured.usage.prompt_tokens,
    cachedTokens: measured.usage.prompt_tokens_details.cached_tokens,
    documents: measured.usage.documents.map(({ index, tokens, cached_tokens, source }) => ({
      letter: documents[index].letter,
      hue: documents[index].hue,
      title: documents[index].title,
      text: documents[index].text,
      tokens,
      cached: cached_tokens,
      source,
    })),
  };
}

/**
 * Runs `setup`: {model, question, documents, before, start, methods, maxTokens}. A "warm" race first lets each method
 * answer, unmeasured, about the documents `before`; a "cold" one begins with empty caches. `ask` sends a body and returns
 * what was measured; `salt` keeps the caches of this page apart from others; `onStage` hears {stage, lane} and `onPiece`
 * hears (lane, piece). Returns the race with its `runs`.
 */
export async function runRace(setup, { ask, salt, onStage, onPiece }) {
  const common = { model: setup.model, question: setup.question };
  const lanes = setup.methods.map((method, lane) => ({ ...common, method, salt: `${salt}-${lane}-${method}` }));
  if (setup.start === "warm") {
    for (const [lane, request] of lanes.entries()) {
      onStage({ stage: "warming", lane });
      await ask(bodyOf({ ...request, documents: setup.before, maxTokens: warmUpTokens }), () => {});
    }
  }
  const runs = [];
  for (const [lane, request] of lanes.entries()) {
    onStage({ stage: "running", lane });
    const body = bodyOf({ ...request, documents: setup.documents, maxTokens: setup.maxTokens });
    runs.push(runOf(await ask(body, (piece) => onPiece(lane, piece)), request.method, setup.documents));
  }
  return { ...setup, runs };
}

/** A name for caches that no page had before. */
export function newSalt() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
