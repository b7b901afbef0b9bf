// The page that `anyslot bench sweep` writes, as a browser shows it, against the JSON that it writes beside the page.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { axeFindings, contrasts, groundLightness, openBrowser, openPage, overflow, schemes, sizes } from "./browser.mjs";

const { ANYSLOT_PROGRAM: program, ANYSLOT_MODEL: model } = process.env;
const leastTextContrast = 4.5; // WCAG 2.2, 1.4.3
const leastShapeContrast = 3; // 1.4.11
const leastTextSize = 10; // CSS pixels

let folder;
let browser;
let url;
let report;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "anyslot-sweep-"));
  const [html, json] = [join(folder, "sweep.html"), join(folder, "sweep.json")];
  const sweep = spawnSync(program, [
    "bench", "sweep", "--model", model, "--threads", "2", "--kv-cache", "64MiB", "--methods", "lazy,block,full",
    "--num-documents", "24", "--documents-per-prompt", "3", "--document-len", "40", "--output-len", "4", "--num-prompts", "4",
    "--run-seconds", "0.2", "--report", html, "--json", json,
  ], { encoding: "utf8" });
  assert.equal(sweep.status, 0, sweep.stderr);
  report = JSON.parse(readFileSync(json, "utf8"));
  url = pathToFileURL(html).href;
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true });
});

/** The number that a text shows, and by how much rounding may have changed it. */
function shown(text) {
  const [, digits, unit] = text.match(/^(-?[\d,]+(?:\.\d+)?)([MG]?)$/) ?? assert.fail(`"${text}" is no number`);
  const factor = { M: 1e6, G: 1e9 }[unit] ?? 1;
  const decimals = digits.split(".")[1]?.length ?? 0;
  return { value: Number(digits.replaceAll(",", "")) * factor, rounding: (factor * 10 ** -decimals) / 2 };
}

function assertShows(text, value, where) {
  const { value: read, rounding } = shown(text);
  // Zeros at the end are left out, so "12" may stand for 12.04 too: three digits are the least that numbers keep.
  const tolerance = Math.max(Math.abs(value) * 0.005, 0.00005);
  assert.ok(Math.abs(read - value) <= Math.min(rounding, tolerance) * (1 + 1e-9), `${where}: ${text} for ${value}`);
}

/** The page's tables and charts as they are shown. */
function readPage(page) {
  return page.evaluate(() => {
    const box = (element) => {
      const { x, y, width, height } = element.getBBox();
      return { x: x + width / 2, y: y + height / 2 };
    };
    const ticks = (svg, anchor) =>
      [...svg.querySelectorAll(`text.tick[text-anchor=${anchor}]`)].map((text) => ({
        text: text.textContent, ...box(text.previousElementSibling),
      }));
    const chart = (figure) => {
      const svg = figure.querySelector("svg");
      return {
        caption: figure.querySelector("figcaption").textContent,
        xLabel: svg.querySelector("text.label").textContent,
        xTicks: ticks(svg, "middle"),
        yTicks: ticks(svg, "end"),
        names: [...svg.querySelectorAll("text.name")].map((text) => text.textContent),
        markers: [...svg.querySelectorAll("g.series title")].map((title) => ({
          text: title.textContent, ...box(title.parentElement),
        })),
      };
    };
    const cell = (td) => ({ text: td.textContent, value: td.dataset.value });
    const table = (section) => ({
      head: [...section.querySelectorAll("thead th")].map((th) => th.textContent),
      rows: [...section.querySelectorAll("tbody tr")].map((tr) => [...tr.children].map(cell)),
    });
    return {
      title: document.querySelector("h1").textContent,
      summary: document.querySelector("main > p").textContent,
      facts: Object.fromEntries([...document.querySelectorAll("dl dt")].map((dt) => [dt.textContent, dt.nextElementSibling.textContent])),
      links: [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href").slice(1)),
      data: JSON.parse(document.getElementById("report").textContent),
      ranking: table(document.getElementById("ranking")),
      figures: [...document.querySelectorAll("section:not(#ranking)")].map((section) => ({
        id: section.id,
        title: section.querySelector("h2").textContent,
        charts: [...section.querySelectorAll("figure")].map(chart),
        table: table(section),
      })),
    };
  });
}

/** Where a value stands on an axis, by the ticks at its ends; undefined for an axis of one tick. */
function placeOn(ticks, along, logarithmic) {
  const [first, last] = [ticks[0], ticks.at(-1)];
  const scaled = (value) => (logarithmic ? Math.log10(value) : value);
  const [low, high] = [scaled(shown(first.text).value), scaled(shown(last.text).value)];
  if (ticks.length < 2 || low === high) return undefined;
  return (value) => first[along] + ((scaled(value) - low) / (high - low)) * (last[along] - first[along]);
}

/** Texts of charts that are too small to read, and pairs of them that stand on each other. */
function unreadableTexts(page) {
  return page.evaluate((least) => [...document.querySelectorAll("svg")].flatMap((svg) => {
    const texts = [...svg.querySelectorAll("text")].map((text) => ({
      text: text.textContent,
      size: parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a,
      box: text.getBBox(),
    }));
    const across = ({ box: a }, { box: b }) =>
      a.x < b.x + b.width && b.x < a.x + a.width && a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height;
    const { width, height } = svg.viewBox.baseVal;
    const cut = ({ box }) => box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height;
    const name = svg.getAttribute("aria-label");
    return [
      ...texts.filter(({ size }) => size < least).map(({ text, size }) => `${name}: ${text} is ${size} high`),
      ...texts.filter(cut).map(({ text }) => `${name}: ${text} is cut`),
      ...texts.flatMap((a, i) => texts.slice(i + 1).filter((b) => across(a, b)).map((b) => `${name}: ${a.text} on ${b.text}`)),
    ];
  }), leastTextSize);
}

function assertTable(drawn, { columns, rows }, name) {
  assert.deepEqual(drawn.head, columns.map(({ label }) => label));
  assert.ok(rows.length > 0, name);
  assert.equal(drawn.rows.length, rows.length);
  rows.forEach((row, r) => columns.forEach(({ field }, c) => {
    const { text, value } = drawn.rows[r][c];
    const where = `${name}, row ${r}, ${field}`;
    if (row[field] === null) {
      assert.equal(text, "-", where);
    } else if (typeof row[field] === "number") {
      assert.equal(Number(value), row[field], where);
      assertShows(text, row[field], where);
    } else {
      assert.equal(text, row[field], where);
    }
  }));
}

function assertChart(drawn, figure, chart) {
  assert.equal(drawn.caption, chart.label + (chart.log ? " (logarithmic)" : ""));
  assert.equal(drawn.xLabel, figure.x.label);
  const isDrawn = (value, log) => typeof value === "number" && (!log || value > 0);
  const points = figure.rows.filter((row) => isDrawn(row[figure.x.field], figure.x.log) && isDrawn(row[chart.field], chart.log));
  assert.equal(drawn.markers.length, points.length, drawn.caption);
  assert.deepEqual(new Set(drawn.names), new Set(points.map(({ series }) => series)));
  const x = placeOn(drawn.xTicks, "x", figure.x.log);
  const y = placeOn(drawn.yTicks, "y", chart.log);
  assert.ok(y, `${figure.id}, ${drawn.caption}: the axis needs two ticks`);
  points.forEach((row, i) => {
    const marker = drawn.markers[i];
    const where = `${figure.id}, ${drawn.caption}: ${marker.text}`;
    const [, series, yText, xText] = marker.text.match(/^(.+): (.+) at (.+)$/);
    assert.equal(series, row.series, where);
    assertShows(yText, row[chart.field], where);
    assertShows(xText, row[figure.x.field], where);
    const nearly = 3; // of 640: ticks are rounded and markers are not all about their middle
    if (x) assert.ok(Math.abs(marker.x - x(row[figure.x.field])) < nearly, `${where} stands at x ${marker.x}`);
    assert.ok(Math.abs(marker.y - y(row[chart.field])) < nearly, `${where} stands at y ${marker.y}`);
  });
}

test("the page asks for nothing and complains of nothing", async () => {
  for (const scheme of schemes) {
    const { problems, requests, close } = await openPage(browser, url, { scheme });
    assert.deepEqual(problems, []);
    assert.deepEqual(requests, [url]);
    await close();
  }
});

test("tables and charts show the numbers of the JSON", async () => {
  const { page, close } = await openPage(browser, url);
  const drawn = await readPage(page);
  assert.deepEqual(drawn.data, report);
  assert.equal(drawn.title, report.title);
  assert.equal(drawn.summary, report.summary);
  assert.deepEqual(drawn.facts, { command: report.command, ...report.facts });
  assertTable(drawn.ranking, report.ranking, "ranking");
  const ids = report.figures.map(({ id }) => id);
  assert.equal(ids.length, 8);
  assert.deepEqual(drawn.links, ids);
  assert.deepEqual(drawn.figures.map(({ id }) => id), ids);
  report.figures.forEach((figure, f) => {
    assert.equal(drawn.figures[f].title, figure.title);
    assertTable(drawn.figures[f].table, figure, figure.id);
    assert.equal(drawn.figures[f].charts.length, figure.charts.length);
    figure.charts.forEach((chart, c) => assertChart(drawn.figures[f].charts[c], figure, chart));
  });
  await close();
});

for (const scheme of schemes) {
  test(`the page can be read in ${scheme} colours`, async () => {
    const { page, close } = await openPage(browser, url, { scheme });
    const lightness = await groundLightness(page);
    assert.ok(scheme === "dark" ? lightness < 0.2 : lightness > 0.9, `the ground is ${lightness} light`);
    assert.deepEqual(await axeFindings(page), []);
    assert.deepEqual(await unreadableTexts(page), []);
    for (const [selector, property, least] of [
      ["h1, h2, p, a, dt, dd, code, summary, figcaption, th, td", "color", leastTextContrast],
      ["svg text", "fill", leastTextContrast],
      ["svg .series > :not(.line)", "fill", leastShapeContrast],
      ["svg .line", "stroke", leastShapeContrast],
    ]) {
      const found = await contrasts(page, selector, property);
      assert.ok(found.length > 0, selector);
      assert.deepEqual(found.filter(({ ratio }) => ratio < least), [], selector);
    }
    await close();
  });

  test(`a phone shows the page in its width, in ${scheme} colours`, async () => {
    const { page, close } = await openPage(browser, url, { scheme, size: sizes.phone });
    assert.equal(await overflow(page), 0);
    assert.deepEqual(await axeFindings(page), []);
    assert.deepEqual(await unreadableTexts(page), []);
    await close();
  });
}
