// What the page says when something goes wrong, and how it asks for a key.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { answerEvents, answerWith, closeQuietly, lane, openBrowser, openRacePage, problem, race, serve } from "./served_page.mjs";

let browser;

before(async () => {
  browser = await openBrowser();
});

after(() => browser?.close());

async function startRace(page) {
  await page.getByRole("button", { name: "Race", exact: true }).click();
}

/** The browser itself writes of each request that fails or is refused; takes those out. */
function forgetRefusals(problems, ...signs) {
  const known = problems.filter((text) => signs.some((sign) => text.includes(sign)));
  for (const text of known) problems.splice(problems.indexOf(text), 1);
  return known.length;
}

describe("an error shows", () => {
  let server;
  let opened;

  before(async () => {
    server = await serve();
  });

  after(() => server?.stop());

  async function onPage(work) {
    opened = await openRacePage(browser, server.url);
    await work(opened.page);
    await closeQuietly(opened);
  }

  test("that the server gives, in its words, and the next race goes well", () => onPage(async (page) => {
    await page.getByLabel("Tokens at most").fill("100000");
    await startRace(page);
    assert.match(await problem(page), /^The server refused \(400\): the request needs \d+ KV blocks/);
    assert.equal(await page.locator("#scale").innerText(), "The race broke off.");
    assert.equal(forgetRefusals(opened.problems, "status of 400"), 1);
    await page.getByLabel("Tokens at most").fill("64");
    await race(page);
    assert.equal(await page.getByRole("alert").isVisible(), false);
    assert.equal((await lane(page, 0)).answer, "Lenki Prize");
  }));

  test("that ends a stream", () => onPage(async (page) => {
    await answerWith(page, [JSON.stringify({ error: { message: "no room\u0007 left", code: "no_room" } }), "[DONE]"]);
    await startRace(page);
    assert.equal(await problem(page), "The server gave up: no room␇ left");
    await page.getByRole("button", { name: "Dismiss" }).click();
    assert.equal(await page.getByRole("alert").isVisible(), false);
  }));

  test("when a stream breaks off", () => onPage(async (page) => {
    await answerWith(page, answerEvents("Len", 12).slice(0, 1));
    await startRace(page);
    assert.equal(await problem(page), "The connection to the server broke in the middle of the answer.");
  }));

  test("for a refusal that is no JSON", () => onPage(async (page) => {
    await page.route("**/v1/chat/completions", (route) =>
      route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" }));
    await startRace(page);
    assert.equal(await problem(page), "The server refused (502): it gave no reason");
    forgetRefusals(opened.problems, "status of 502");
  }));

  test("for metrics that are none, in the strip", () => onPage(async (page) => {
    await page.route("**/metrics", (route) => route.fulfill({ body: "<h1>Not here</h1>" }));
    await page.getByText("not a metric: <h1>Not here</h1>").waitFor();
  }));

  test("when the server has been stopped, in the strip too", async () => {
    const own = await serve();
    const { page, problems, close } = await openRacePage(browser, own.url);
    assert.equal(await own.stop(), 0);
    await startRace(page);
    assert.match(await problem(page), /^The server does not answer\. Is anyslot serve still running\?$/);
    await page.locator(".pool.silent").waitFor();
    forgetRefusals(problems, "net::ERR_");
    assert.deepEqual(problems, []);
    await close();
  });
});

describe("with keys", () => {
  let folder;
  let server;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "anyslot-page-"));
    writeFileSync(join(folder, "keys"), "alpha\nbeta\n");
    server = await serve("--api-key-file", join(folder, "keys"));
  });

  after(async () => {
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true });
  });

  const open = () => openRacePage(browser, server.url, { unconnected: true });
  async function giveKey(page, key) {
    await page.getByLabel("Key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Use this key" }).click();
  }

  test("the page asks for one, keeps it in the tab and races", async () => {
    const opened = await open();
    const { page, problems } = opened;
    await page.getByRole("dialog").getByText("answers only those who have one of its keys").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), "key");
    await giveKey(page, "alpha");
    await page.getByText("default method").waitFor();
    await race(page);
    assert.equal((await lane(page, 0)).answer, "Lenki Prize");
    await page.reload();
    await page.getByText("default method").waitFor();
    assert.equal(await page.getByRole("dialog").isVisible(), false);
    assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, document.cookie])), '[{},""]');
    forgetRefusals(problems, "net::ERR_ABORTED"); // what was asked for as the page was loaded again
    await closeQuietly(opened);
    const other = await open();
    await other.page.getByRole("dialog").waitFor();
    await closeQuietly(other);
  });

  test("a wrong key is asked for again", async () => {
    const opened = await open();
    const { page, problems } = opened;
    await giveKey(page, "gamma");
    await page.getByRole("dialog").getByText("The server does not know this key.").waitFor();
    await giveKey(page, "beta");
    await page.getByText("default method").waitFor();
    assert.equal(forgetRefusals(problems, "status of 401"), 1);
    await closeQuietly(opened);
  });

  test("who gives none is told when it matters", async () => {
    const opened = await open();
    const { page, problems } = opened;
    await page.getByRole("button", { name: "Cancel" }).click();
    await startRace(page);
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    assert.match(await problem(page), /^The server wants an API key/);
    await page.getByRole("button", { name: "API key", exact: true }).click();
    await giveKey(page, "alpha");
    await page.getByText("default method").waitFor();
    assert.equal(await page.getByRole("alert").isVisible(), false);
    assert.equal(forgetRefusals(problems, "status of 401"), 1);
    await closeQuietly(opened);
  });
});
