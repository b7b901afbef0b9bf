// The cards: order by mouse, finger and keyboard, editing, and text that would be something else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerEvents, answerWith, handle, lane, order, phone, race, servedPages } from "./served_page.mjs";

const onPage = servedPages();

async function middle(locator) {
  const { x, y, width, height } = await locator.boundingBox();
  return { x: x + width / 2, y: y + height / 2 };
}

const card = (page, letter) => page.locator(`.card[data-letter="${letter}"]`);
const slots = (page) => page.locator(".slot").evaluateAll((selects) => selects.map((select) => Number(select.value)));
const announced = (page) => page.locator("#announcer").textContent();

/** Presses on `from` and moves to the middle of the card `letter`, without letting go. */
async function dragTo(page, from, letter) {
  const [start, end] = [await middle(from), await middle(card(page, letter))];
  await page.mouse.move(start.x, start.y);
  await page.mouse.down();
  await page.mouse.move(start.x + 2, start.y + 10, { steps: 3 });
  await page.mouse.move(end.x, end.y, { steps: 12 });
}

test("a card is dragged by its handle with a mouse, and what is asked has the new order", () => onPage(async (page) => {
  await dragTo(page, handle(page, "A"), "D");
  await page.mouse.up();
  assert.equal(await order(page), "BCDAEFGHIJKL");
  assert.deepEqual(await slots(page), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.equal(await announced(page), "Gremiar Lorkadahl is in slot 4 of 12.");
  const asked = page.waitForRequest((request) => request.method() === "POST" && request.postDataJSON().max_tokens > 1);
  await race(page);
  assert.deepEqual((await asked).postDataJSON().documents.slice(0, 4).map(({ title }) => title),
    ["Caldran University", "Nelwick", "The Northern Compass", "Gremiar Lorkadahl"]);
  assert.equal((await lane(page, 0)).prompt, "BCDAEFGHIJKL");
  assert.equal((await lane(page, 0)).answer, (await lane(page, 1)).answer);
}));

test("a card is dragged upwards by its text", () => onPage(async (page) => {
  await dragTo(page, card(page, "F").locator(".about"), "B");
  await page.mouse.up();
  assert.equal(await order(page), "AFBCDEGHIJKL");
  assert.equal(await page.evaluate(() => getSelection().toString()), "", "no text was selected");
}));

test("Escape takes a drag back", () => onPage(async (page) => {
  await dragTo(page, handle(page, "A"), "E");
  assert.equal(await order(page), "BCDEAFGHIJKL", "others make room meanwhile");
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.equal(await order(page), "ABCDEFGHIJKL");
  assert.equal(await page.locator(".dragged").count(), 0);
}));

test("a press without a move changes nothing", () => onPage(async (page) => {
  await handle(page, "C").click();
  assert.equal(await order(page), "ABCDEFGHIJKL");
  assert.equal(await announced(page), "");
}));

test("dragging to the edge of a small window scrolls", () => onPage(async (page) => {
  const { x, y } = await middle(handle(page, "A"));
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x, 390, { steps: 10 });
  await page.waitForFunction(() => document.querySelector("#cards").lastElementChild.dataset.letter === "A");
  await page.mouse.up();
  assert.equal(await order(page), "BCDEFGHIJKLA");
}, { size: { viewport: { width: 1000, height: 400 } } }));

test("a finger drags by the handle and scrolls elsewhere", () => onPage(async (page) => {
  const session = await page.context().newCDPSession(page);
  const touch = (type, points) => session.send("Input.dispatchTouchEvent", { type, touchPoints: points });
  const swipe = async (from, to) => {
    await touch("touchStart", [from]);
    for (let step = 1; step <= 10; ++step) {
      await touch("touchMove", [{ x: from.x, y: from.y + ((to.y - from.y) * step) / 10 }]);
    }
    await touch("touchEnd", []);
  };
  await swipe(await middle(handle(page, "B")), await middle(card(page, "D")));
  assert.equal(await order(page), "ACDBEFGHIJKL");
  assert.equal(await page.evaluate(() => scrollY), 0);
  const text = await middle(card(page, "E").locator(".about"));
  await swipe(text, { x: text.x, y: text.y - 300 });
  await page.waitForFunction(() => scrollY > 0);
  assert.equal(await order(page), "ACDBEFGHIJKL");
}, { size: phone }));

test("arrow keys on a handle move the card, which keeps the focus", () => onPage(async (page) => {
  const focused = () => page.evaluate(() => document.activeElement.closest(".card")?.dataset.letter);
  await handle(page, "C").focus();
  for (const [key, expected, slot] of [
    ["ArrowDown", "ABDCEFGHIJKL", 4], ["ArrowUp", "ABCDEFGHIJKL", 3], ["Home", "CABDEFGHIJKL", 1], ["ArrowUp", "CABDEFGHIJKL", 1],
    ["End", "ABDEFGHIJKLC", 12], ["ArrowDown", "ABDEFGHIJKLC", 12],
  ]) {
    await page.keyboard.press(key);
    assert.equal(await order(page), expected, key);
    assert.equal(await focused(), "C", key);
    assert.equal(await announced(page), `Nelwick is in slot ${slot} of 12.`);
  }
  assert.match(await handle(page, "C").getAttribute("aria-label"), /^C, Nelwick: slot 12 of 12/);
}));

test("the whole page works with the keyboard alone", () => onPage(async (page) => {
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter"); // the link past the cards
  assert.equal(await page.evaluate(() => document.activeElement.id), "question");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("Which river flows through Nelwick?");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Replay", exact: true }).waitFor();
  assert.equal((await lane(page, 0)).answer, "Chemi");
  assert.equal((await lane(page, 1)).answer, "Chemi");
}));

test("the slot is chosen from a list", () => onPage(async (page) => {
  await page.getByLabel("Slot of Nelwick").selectOption("1");
  assert.equal(await order(page), "CABDEFGHIJKL");
  await page.getByLabel("Slot of Nelwick").selectOption("12");
  assert.equal(await order(page), "ABDEFGHIJKLC");
}));

test("shuffling gives another order, restoring the first one", () => onPage(async (page) => {
  await page.getByRole("button", { name: "Shuffle" }).click();
  const shuffled = await order(page);
  assert.notEqual(shuffled, "ABCDEFGHIJKL");
  assert.equal([...shuffled].sort().join(""), "ABCDEFGHIJKL");
  await page.getByRole("button", { name: "Remove Nelwick" }).click();
  await page.getByRole("button", { name: "Restore samples" }).click();
  assert.equal(await order(page), "ABCDEFGHIJKL");
}));

test("documents are added, edited and removed", () => onPage(async (page) => {
  await page.getByRole("button", { name: "Add document" }).click();
  await page.getByLabel("Title").fill("Lornaburg");
  await page.getByLabel("Text").fill("Lornaburg is a city in Japan. The river Masa flows through it.");
  await page.keyboard.press("Control+Enter");
  assert.equal(await order(page), "ABCDEFGHIJKLM");
  await page.getByRole("button", { name: "Edit Valford" }).click();
  await page.getByLabel("Text").fill("Changed and given up.");
  await page.keyboard.press("Escape");
  assert.match(await card(page, "J").innerText(), /on the river Vordin/);
  await page.getByRole("button", { name: "Remove Nelwick" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await order(page), "ABDEFGHIJKLM");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Remove The Northern Compass");
  await page.getByLabel("Question", { exact: true }).fill("Which river flows through Lornaburg?");
  await race(page);
  assert.equal((await lane(page, 0)).answer, "Masa");
  assert.equal((await lane(page, 0)).prompt, "ABDEFGHIJKLm");
}));

test("without any document there is still a race", () => onPage(async (page) => {
  for (let left = 12; left > 0; --left) await page.locator(".remove").first().click();
  assert.equal(await order(page), "");
  assert.equal(await page.evaluate(() => document.activeElement.id), "add");
  await race(page);
  assert.match((await lane(page, 0)).reused, /^\d+ of \d+ tokens cached$/);
}));

const markup = `<img src="x" onerror="globalThis.harmed = true"><script>globalThis.harmed = true</script>`;
const controls = "\u0000\u001b[31m\u202e&amp;";
const shownControls = "␀␛[31m[U+202E]&amp;";

/** Nothing of what was only text has become an element or a script. */
async function assertHarmless(page) {
  assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
  assert.equal(await page.locator("main img, main script, main a").count(), 0);
}

test("titles, texts and questions with markup and control characters show as text", () => onPage(async (page) => {
  await page.getByRole("button", { name: "Add document" }).click();
  await page.getByLabel("Title").fill(markup + controls);
  await page.getByLabel("Text").fill(`A text. ${markup}\n${controls}`);
  await page.getByRole("button", { name: "Save" }).click();
  assert.equal(await card(page, "M").locator("h3").textContent(), markup + shownControls);
  assert.equal(await card(page, "M").locator(".about p").textContent(), `A text. ${markup}\n${shownControls}`);
  await page.getByLabel("Question", { exact: true }).fill(`${markup} Which river flows through Nelwick?`);
  await race(page);
  await assertHarmless(page);
  const segment = page.locator(".lane .prompt li").nth(12);
  assert.ok((await segment.textContent()).includes(markup + shownControls));
  assert.ok((await page.locator("#history .asked").first().textContent()).startsWith(markup));
  await page.getByRole("button", { name: `Edit ${markup + shownControls}` }).click();
  assert.equal(await page.getByLabel("Text").inputValue(), `A text. ${markup}\n${controls}`, "it is edited as it is");
}));

test("answers with markup and control characters show as text", () => onPage(async (page) => {
  await answerWith(page, answerEvents(markup + controls, 12));
  await race(page);
  assert.equal((await lane(page, 0)).answer, markup + shownControls);
  assert.equal(await page.locator("#history .said").textContent(), markup + shownControls);
  await assertHarmless(page);
}));
