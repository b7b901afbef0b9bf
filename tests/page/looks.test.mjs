// How the page looks: contrast, labels and width in every state, with pictures of each.
// The pictures go to the folder ANYSLOT_SCREENSHOTS, when that is given.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { groundLightness, overflow, schemes } from "../browser/browser.mjs";
import { closeQuietly, desktop, findings, letterContrasts, openBrowser, openRacePage, phone, race, serve } from "./served_page.mjs";

const { ANYSLOT_SCREENSHOTS: pictures } = process.env;
const leastContrast = 4.5; // WCAG 2.2, 1.4.3

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([serve(), openBrowser()]);
  if (pictures) mkdirSync(pictures, { recursive: true });
});

after(async () => {
  await browser?.close();
  assert.equal(await server?.stop(), 0);
});

async function waitForReplay(page) {
  await page.getByRole("button", { name: "Race", exact: true }).click();
  await page.getByRole("button", { name: "Skip to the end" }).waitFor();
}

const states = {
  fresh: async () => {},
  replay: waitForReplay,
  raced: async (page) => {
    await race(page);
    await page.getByLabel("Slot of The Empire and the Sky").selectOption("10");
    await race(page);
  },
  edited: async (page) => {
    await page.getByRole("button", { name: "Edit Nelwick" }).click();
    await page.getByRole("button", { name: "Add a document" }).click();
  },
  failed: async (page) => {
    await page.route("**/v1/chat/completions", (route) => route.fulfill({
      contentType: "text/event-stream",
      body: `data: ${JSON.stringify({ error: { message: `documents[3] holds ${"x".repeat(200)} and so on` } })}\n\n`,
    }));
    await page.getByRole("button", { name: "Race", exact: true }).click();
    await page.getByRole("alert").waitFor();
  },
  key: async (page) => {
    await page.locator("#key-button").evaluate((button) => {
      button.hidden = false;
      button.click();
    });
    await page.getByRole("dialog").waitFor();
  },
  long: async (page) => {
    await page.getByRole("button", { name: "Edit Nelwick" }).click();
    await page.getByLabel("Title").fill("Unbreakable".repeat(20));
    await page.getByLabel("Text").fill("Unbreakable".repeat(200));
    await page.getByRole("button", { name: "Keep" }).click();
    await page.getByLabel("Question", { exact: true }).fill("Unbreakable".repeat(20));
    await race(page);
  },
};

for (const [name, prepare] of Object.entries(states)) {
  for (const [sizeName, size] of Object.entries({ desktop, phone })) {
    for (const scheme of schemes) {
      test(`${name} on a ${sizeName}, ${scheme}`, async () => {
        const opened = await openRacePage(browser, server.url, { scheme, size });
        const { page } = opened;
        await prepare(page);
        if (pictures) {
          await page.screenshot({ path: join(pictures, `${name}-${sizeName}-${scheme}.png`), fullPage: name !== "key" && name !== "replay" });
        }
        assert.deepEqual(await findings(page), []);
        for (const { what, ratio } of await letterContrasts(page)) {
          assert.ok(ratio >= leastContrast, `${what}: ${ratio.toFixed(2)}`);
        }
        assert.equal(await overflow(page), 0);
        const lightness = await groundLightness(page);
        assert.ok(scheme === "light" ? lightness > 0.8 : lightness < 0.2, `the ground is ${lightness}`);
        await closeQuietly(opened);
      });
    }
  }
}
