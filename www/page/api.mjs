// The server's API, as the page uses it (docs/server.md). Addresses are relative to the page, so that it also works below a
// path of a proxy.
import { EventStream } from "./event_stream.mjs";
import { visibleText } from "./visible_text.mjs";

/** Why a request failed, in words for the user. `status` is 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

function addressOf(path) {
  return new URL(path, document.baseURI);
}

/** Sends a request; a request that cannot be sent or that is refused throws. */
async function request(path, { key, signal, body } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(addressOf(path), {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal,
      cache: "no-store",
    });
  } catch (error) {
    throw brokenOff(error, "The server does not answer. Is anyslot serve still running?");
  }
  if (!response.ok) throw new ApiError(response.status, await refusalOf(response));
  return response;
}

/** An error of the network, or of the user's own stop, which keeps its name. */
function brokenOff(error, message) {
  return error.name === "AbortError" ? error : new ApiError(0, message);
}

async function refusalOf(response) {
  const reason = await response.json().then(({ error }) => error?.message, () => undefined);
  return visibleText(`The server refused (${response.status}): ${reason ?? "it gave no reason"}`);
}

export async function needsKey() {
  return (await (await request("page/server.json")).json()).needs_key;
}

/** The model that is served: {id, max_model_len, default_method, block_trained}. */
export async function servedModel(options) {
  return (await (await request("v1/models", options)).json()).data[0];
}

export async function metricsText() {
  return (await request("metrics")).text();
}

/** The data of the events of an answer as they come, each {at, data}: at is performance.now() of its arrival. */
async function* eventsOf(response) {
  const stream = new EventStream();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      throw brokenOff(error, "The connection to the server broke in the middle of the answer.");
    }
    if (piece.done) return;
    const at = performance.now();
    for (const data of stream.push(piece.value)) yield { at, data };
  }
}

/**
 * Asks in a stream. Returns {firstTokenMs, totalMs, pieces: [{at, text}], usage}, times in ms after the request was sent;
 * firstTokenMs is null for an answer without text. `onPiece` is called with each piece as it comes.
 */
export async function ask(body, { key, signal, onPiece = () => {} } = {}) {
  const sent = performance.now();
  const response = await request("v1/chat/completions", {
    key,
    signal,
    body: { ...body, stream: true, stream_options: { include_usage: true } },
  });
  const run = { firstTokenMs: null, totalMs: 0, pieces: [], usage: null };
  for await (const { at, data } of eventsOf(response)) {
    if (data === "[DONE]") return { ...run, totalMs: at - sent };
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ApiError(response.status, visibleText(`The server gave up: ${chunk.error.message}`));
    if (chunk.usage) run.usage = chunk.usage;
    const text = chunk.choices[0]?.delta?.content;
    if (!text) continue;
    run.firstTokenMs ??= at - sent;
    run.pieces.push({ at: at - sent, text });
    onPiece(run.pieces.at(-1));
  }
  throw new ApiError(0, "The connection to the server broke in the middle of the answer.");
}
