// Pages in a real Chromium: what they do that nobody sees, and whether people can read them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { findChromium } from "./chromium.mjs";

export const schemes = ["light", "dark"];
export const sizes = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 375, height: 720 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

const patience = 120_000; // ms, of a machine that does much else meanwhile

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The browser; close() it at the end. Its sandbox is off, because the tests may run as root. */
export function openBrowser() {
  return chromium.launch({ executablePath: findChromium(), chromiumSandbox: false, timeout: patience });
}

/**
 * Loads `url` in a page of a context of its own. Returns the page with what it did from then on: `problems`, what it wrote to
 * the console as a warning or an error, what it threw, and requests that failed; `requests`, the addresses that it asked for.
 */
export async function openPage(browser, url, { scheme = "light", size = sizes.desktop } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, ...size });
  const page = await context.newPage();
  const problems = [];
  const requests = [];
  page.on("console", (message) => {
    if (["warning", "error"].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`thrown: ${error.message}`));
  page.on("requestfailed", (request) => problems.push(`failed: ${request.url()}: ${request.failure()?.errorText}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("data:")) requests.push(request.url());
  });
  await page.goto(url, { waitUntil: "load", timeout: patience });
  return { page, problems, requests, close: () => context.close() };
}

/** What axe-core objects to on the page, a line per place. */
export async function axeFindings(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, any }) => `${id} at ${target}: ${any[0]?.message ?? help}`));
}

/**
 * Contrast, as WCAG defines it, also of what axe-core cannot tell, as drawings in SVG: for each element that `selector`
 * finds, between its `property` ("color", "fill" or "stroke") and the colour behind it. Colours that are see-through count as
 * the worst.
 */
export function contrasts(page, selector, property) {
  return page.evaluate(([selector, property]) => {
    const channels = (colour) => {
      const [r, g, b, alpha = 1] = colour.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
      return { r, g, b, alpha };
    };
    const luminance = ({ r, g, b }) => {
      const linear = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const behind = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const colour = channels(getComputedStyle(e).backgroundColor);
        if (colour.alpha > 0) return colour;
      }
      return channels("rgb(255, 255, 255)");
    };
    return [...document.querySelectorAll(selector)].map((element) => {
      const colour = channels(getComputedStyle(element)[property]);
      const [light, dark] = [luminance(colour), luminance(behind(element))].sort((a, b) => b - a);
      return { what: element.outerHTML.slice(0, 120), ratio: colour.alpha < 1 ? 1 : (light + 0.05) / (dark + 0.05) };
    });
  }, [selector, property]);
}

/** How light the page's ground is: 0 is black, 1 is white. */
export function groundLightness(page) {
  return page.evaluate(() => {
    const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number);
    return (r + g + b) / 3 / 255;
  });
}

/** CSS pixels by which the page is wider than its window was asked to be. */
export async function overflow(page) {
  const width = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth));
  return width - page.viewportSize().width;
}
