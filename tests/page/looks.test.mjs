// How the page looks: contrast, labels and width in every state, with pictures of each.
// The pictures go to the folder ANYSLOT_SCREENSHOTS, when that is given.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { axeFindings, groundLightness, overflow, schemes } from "../browser/browser.mjs";
import { desktop, letterContrasts, phone, race, servedPages } from "./served_page.mjs";

const { ANYSLOT_SCREENSHOTS: pictures } = process.env;
const leastContrast = 4.5; // WCAG 2.2, 1.4.3

const onPage = servedPages();

before(() => {
  if (pictures) mkdirSync(pictures, { recursive: true });
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
    await page.getByRole("button", { name: "Add document" }).click();
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
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Question", { exact: true }).fill("Unbreakable".repeat(20));
    await race(page);
  },
};

for (const [name, prepare] of Object.entries(states)) {
  for (const [sizeName, size] of Object.entries({ desktop, phone })) {
    for (const scheme of schemes) {
      test(`${name} on a ${sizeName}, ${scheme}`, () => onPage(async (page) => {
        await prepare(page);
        if (pictures) {
          const fullPage = !["replay", "failed", "key"].includes(name);
          await page.screenshot({ path: join(pictures, `${name}-${sizeName}-${scheme}.png`), fullPage });
        }
        assert.deepEqual(await axeFindings(page), []);
        for (const { what, ratio } of await letterContrasts(page)) {
          assert.ok(ratio >= leastContrast, `${what}: ${ratio.toFixed(2)}`);
        }
        assert.equal(await overflow(page), 0);
        const lightness = await groundLightness(page);
        assert.ok(scheme === "light" ? lightness > 0.8 : lightness < 0.2, `the ground is ${lightness}`);
      }, { scheme, size }));
    }
  }
}
