// The page of a served model, in a browser, and what a user does and sees there.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { openBrowser, openPage, sizes } from "../browser/browser.mjs";
import { serve } from "../clients/served_model.mjs";

export { openBrowser, serve };
export const phone = { ...sizes.phone, viewport: { width: 360, height: 740 } };
export const desktop = sizes.desktop;

const patience = 120_000; // ms, of a machine that does much else meanwhile

/** The page, loaded and connected; `options` as for openPage(). What stands in `problems` and is not taken out is a fault. */
export async function openRacePage(browser, url, options = {}) {
  const opened = await openPage(browser, `${url}/`, options);
  opened.page.setDefaultTimeout(patience);
  if (!options.unconnected) await opened.page.getByText("default method").waitFor();
  return { ...opened, url };
}

/** Ends a test's page: it must not have complained, nor asked anybody but its server. */
export async function closeQuietly({ problems, requests, url, close }) {
  assert.deepEqual(problems, []);
  assert.deepEqual(requests.filter((address) => !address.startsWith(`${url}/`)), []);
  await close();
}

/**
 * For a file of tests: starts a server and a browser before them and ends them after. Returns a function that runs `work`
 * on a page of its own, which must stay quiet; `work` gets the page and all that openRacePage() returns.
 */
export function servedPages() {
  let server;
  let browser;
  before(async () => {
    [server, browser] = await Promise.all([serve(), openBrowser()]);
  });
  after(async () => {
    await browser?.close();
    assert.equal(await server?.stop(), 0);
  });
  return async (work, options) => {
    const opened = await openRacePage(browser, server.url, options);
    await work(opened.page, opened);
    await closeQuietly(opened);
  };
}

/** The letters of the cards in their order. */
export function order(page) {
  return page.locator("#cards .card").evaluateAll((cards) => cards.map((card) => card.dataset.letter).join(""));
}

export function handle(page, letter) {
  return page.locator(`.card[data-letter="${letter}"] .handle`);
}

/** Starts a race and waits for the end of its replay. */
export async function race(page) {
  await page.getByRole("button", { name: "Race", exact: true }).click();
  await page.getByRole("button", { name: "Replay", exact: true }).waitFor();
}

/** What a lane shows: {method, first (ms), reused, answer, prompt (letters, small for those that were computed)}. */
export function lane(page, number) {
  return page.locator(".lane").nth(number).evaluate((root) => {
    const text = (selector) => root.querySelector(selector).textContent;
    const [, digits, unit] = text(".first").match(/^([\d.]+)\s(ms|s)$/) ?? [];
    const letterOf = (segment) => {
      const letter = segment.querySelector("b").textContent;
      return segment.classList.contains("computed") ? letter.toLowerCase() : letter;
    };
    return {
      method: root.querySelector("select").value,
      first: Number(digits) * (unit === "s" ? 1000 : 1),
      reused: text(".reuse"),
      answer: text(".answer"),
      prompt: [...root.querySelectorAll(".prompt .document")].map(letterOf).join(""),
    };
  });
}

export function verdict(page) {
  return page.locator("#verdict").innerText();
}

/** What the page says went wrong; waits until it says something. */
export async function problem(page) {
  const alert = page.getByRole("alert");
  await alert.waitFor();
  return alert.locator("p").textContent();
}

/** Makes the server's next answers to questions these events, without asking it. */
export async function answerWith(page, events) {
  await page.route("**/v1/chat/completions", (route) =>
    route.fulfill({ contentType: "text/event-stream", body: events.map((event) => `data: ${event}\n\n`).join("") }));
}

/** The events of an answer about the page's `numDocuments` documents. */
export function answerEvents(text, numDocuments) {
  const cached = { tokens: 20, cached_tokens: 20, source: "pool" };
  const usage = {
    prompt_tokens: 20 * numDocuments + 50,
    completion_tokens: 3,
    prompt_tokens_details: { cached_tokens: 20 * numDocuments },
    documents: Array.from({ length: numDocuments }, (_, index) => ({ index, id: null, ...cached })),
  };
  return [JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] }), JSON.stringify({ choices: [], usage }), "[DONE]"];
}

/**
 * Contrast, as WCAG defines it, of the letters that stand for documents, each with its own ground. axe-core takes single
 * letters for no text.
 */
export function letterContrasts(page) {
  return page.evaluate(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (colour) => {
      canvas.fillStyle = colour; // any notation
      canvas.fillRect(0, 0, 1, 1);
      const channels = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => byte / 255);
      const [r, g, b] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const isClear = (colour) => colour === "transparent" || colour === "rgba(0, 0, 0, 0)";
    const ground = (letter) => {
      for (let e = letter; e; e = e.parentElement) {
        const colour = getComputedStyle(e).backgroundColor;
        if (!isClear(colour)) return colour;
      }
      return "white";
    };
    return [...document.querySelectorAll(".letter, .chip, .prompt b")].map((letter) => {
      const [light, dark] = [getComputedStyle(letter).color, ground(letter)].map(luminance).sort((a, b) => b - a);
      return { what: `${letter.textContent} in ${letter.parentElement.className}`, ratio: (light + 0.05) / (dark + 0.05) };
    });
  });
}
