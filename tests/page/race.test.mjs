// Races on the page: what two lanes show of one question, and how they follow the order of the cards.
import assert from "node:assert/strict";
import { test } from "node:test";
import { desktop, handle, lane, order, race, servedPages, verdict } from "./served_page.mjs";

const onPage = servedPages();

test("documents in a new order: both lanes answer the same, and lazy sooner", () => onPage(async (page) => {
  await race(page);
  const [lazy, prefix] = [await lane(page, 0), await lane(page, 1)];
  assert.deepEqual([lazy.method, prefix.method], ["lazy", "prefix"]);
  assert.equal(lazy.answer, "Lenki Prize");
  assert.equal(prefix.answer, lazy.answer);
  assert.ok(lazy.first > 0 && lazy.first < prefix.first, `lazy ${lazy.first} ms, prefix ${prefix.first} ms`);
  assert.equal(lazy.prompt, "ABCDEFGHIJKL", "all from the cache");
  assert.equal(prefix.prompt, "abcdefghijkl", "all computed");
  assert.match(lazy.reused, /^(\d+) of \1 document tokens cached$/);
  assert.match(prefix.reused, /^0 of \d+ document tokens cached$/);
  assert.match(await verdict(page), /^lazy began to answer [\d.]+ times sooner.*\n.*\n.*\nBoth gave the same answer\.$/s);
  assert.equal(await page.locator("#read-before").innerText().then((text) => text.replace(/\s/g, "")), "BothhadreadFGHIJKLABCDE");
}));

test("the replay shows lazy's answer while prefix has none", () => onPage(async (page) => {
  await page.getByRole("button", { name: "Race", exact: true }).click();
  await page.waitForFunction(() => {
    const [lazy, prefix] = [...document.querySelectorAll(".lane .answer")].map((answer) => answer.textContent);
    return lazy === "Lenki Prize" && prefix === "" && document.querySelector("#scale").textContent.startsWith("Replay of both lanes");
  });
  assert.match(await page.locator("#scale").innerText(), /\d+ times slower than measured|at real speed/);
  await page.getByRole("button", { name: "Skip to the end" }).click();
  assert.equal((await lane(page, 1)).answer, "Lenki Prize");
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.getByRole("button", { name: "Skip to the end" }).waitFor();
}));

test("bars are drawn to one scale", () => onPage(async (page) => {
  await race(page);
  const widths = await page.locator(".track .waited").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  const firsts = [(await lane(page, 0)).first, (await lane(page, 1)).first];
  // Half a millisecond of rounding, and a pixel.
  assert.ok(Math.abs(widths[0] / widths[1] - firsts[0] / firsts[1]) < 0.5 / firsts[1] * 2 + 2 / widths[1], `${widths} px for ${firsts} ms`);
}));

test("prefix reuses what stands before the first change, lazy everything", () => onPage(async (page) => {
  await race(page);
  await handle(page, "K").focus();
  await page.keyboard.press("ArrowUp");
  await race(page);
  assert.equal((await lane(page, 0)).prompt, "ABCDEFGHIKJL");
  assert.match((await lane(page, 1)).prompt, /^ABCDEFGH[Ii]kjl$/);
  assert.match(await verdict(page), /prefix reused A B C D E F G H( I)?, as far as the prompt begins like an earlier one/);
}));

test("in the same order neither has to compute a document", () => onPage(async (page) => {
  await race(page);
  await race(page);
  for (const number of [0, 1]) assert.equal((await lane(page, number)).prompt, "ABCDEFGHIJKL");
}));

test("an edited document is computed anew, and by lazy no other", () => onPage(async (page) => {
  await race(page);
  await page.getByRole("button", { name: "Edit Nelwick" }).click();
  await page.getByLabel("Text").fill("Nelwick is a city in Germany. The river Masa flows through it. Its mayor is Rion Elvewick.");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("Question", { exact: true }).fill("Which river flows through Nelwick?");
  await race(page);
  const [lazy, prefix] = [await lane(page, 0), await lane(page, 1)];
  assert.equal(lazy.prompt, "ABcDEFGHIJKL");
  assert.match(prefix.prompt, /^AB.defghijkl$/);
  assert.deepEqual([lazy.answer, prefix.answer], ["Masa", "Masa"]);
  assert.match(await verdict(page), /lazy computed only what was new to it: C\./);
}));

test("answers follow the order of the cards", () => onPage(async (page) => {
  await page.getByRole("button", { name: "First document" }).click();
  await race(page);
  assert.equal((await lane(page, 0)).answer, "Gremiar Lorkadahl");
  await handle(page, "J").focus();
  await page.keyboard.press("Home");
  await race(page);
  for (const number of [0, 1]) assert.equal((await lane(page, number)).answer, "Valford");
}));

test("with empty caches both compute everything", () => onPage(async (page) => {
  await race(page);
  await page.getByLabel("all caches are empty").check();
  await race(page);
  for (const number of [0, 1]) assert.equal((await lane(page, number)).prompt, "abcdefghijkl");
  assert.match(await verdict(page), /Neither had anything cached/);
  assert.equal(await page.locator("#read-before").innerText(), "Both began with empty caches.");
}));

test("lanes take other methods", () => onPage(async (page) => {
  await page.getByLabel("Method of lane 1").selectOption("block");
  await page.getByLabel("Method of lane 2").selectOption("full");
  await race(page);
  const [block, full] = [await lane(page, 0), await lane(page, 1)];
  assert.deepEqual([block.method, full.method, block.answer, full.answer], ["block", "full", "Lenki Prize", "Lenki Prize"]);
  assert.equal(block.prompt, "ABCDEFGHIJKL");
  assert.match(await verdict(page), /full computes every document every time\./);
}));

test("the strip tells of the pool and the hits", () => onPage(async (page) => {
  await race(page);
  await page.waitForFunction(() => /^[1-9]\d*% of [\d,]+ document tokens$/.test(document.querySelector("#hit-text").value));
  const text = await page.locator("#pool-text").textContent();
  const [, percent, documents, used, total] = text.match(/^(\d+)%: (\d+) documents, ([\d,]+) of ([\d,]+) blocks$/);
  assert.ok(Number(documents) >= 12, text);
  const [usedBlocks, totalBlocks] = [used, total].map((number) => Number(number.replaceAll(",", "")));
  assert.equal(Number(percent), Math.round((usedBlocks / totalBlocks) * 100));
  const widths = await page.locator("#pool .meter").first().evaluate((meter) =>
    [...meter.children].map((part) => part.getBoundingClientRect().width / meter.clientWidth).reduce((sum, width) => sum + width));
  assert.ok(Math.abs(widths - usedBlocks / totalBlocks) < 0.01);
  assert.match(await page.locator("#load-text").textContent(), /^\d running, \d waiting$/);
}));

test("past races are listed and shown again", () => onPage(async (page) => {
  await race(page);
  await page.getByRole("button", { name: "Last document" }).click();
  await race(page);
  const rows = page.locator("#history li");
  assert.deepEqual(await rows.locator(".said").allTextContents(), ["Bevo's Wall", "Lenki Prize"]);
  const how = await rows.nth(1).locator(".how").textContent();
  assert.match(how, /^lazy [\d.]+\sm?s, 100% cached · prefix [\d.]+\sm?s, 0% cached · [\d.]+ times$/);
  await rows.nth(1).getByRole("button", { name: "Show again" }).click();
  await page.getByRole("button", { name: "Skip to the end" }).click();
  assert.equal((await lane(page, 0)).answer, "Lenki Prize");
  assert.equal((await lane(page, 1)).prompt, "abcdefghijkl");
}));

test("who wants little motion sees the end at once", () => onPage(async (page) => {
  const phases = await page.evaluate(() => {
    globalThis.phases = [];
    new MutationObserver(() => globalThis.phases.push(document.querySelector("#scale").textContent))
      .observe(document.querySelector("#scale"), { childList: true });
    return globalThis.phases;
  });
  assert.deepEqual(phases, []);
  await race(page);
  const seen = await page.evaluate(() => globalThis.phases);
  assert.ok(seen.length > 0 && !seen.some((text) => text.startsWith("Replay of")), `${seen}`);
  assert.equal((await lane(page, 1)).answer, "Lenki Prize");
}, { size: { ...desktop, reducedMotion: "reduce" } }));

test("a race can be stopped", () => onPage(async (page, { problems }) => {
  await page.route("**/v1/chat/completions", () => {}); // never answered
  await page.getByRole("button", { name: "Race", exact: true }).click();
  await page.getByText("reads the documents in their old order").first().waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByText("The race was stopped.").waitFor();
  assert.equal(await page.getByRole("alert").isVisible(), false);
  assert.deepEqual(problems.splice(0).map((text) => text.replace(/.*: /, "")), ["net::ERR_ABORTED"]);
  await page.unroute("**/v1/chat/completions");
  await race(page);
  assert.equal((await lane(page, 0)).answer, "Lenki Prize");
  assert.equal(await order(page), "ABCDEFGHIJKL");
}));
