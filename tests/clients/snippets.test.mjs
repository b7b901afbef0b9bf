// The snippets of docs/clients.md: each runs as it stands, but for the names of server and model, and prints what stands under it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { model, serve } from "./served_model.mjs";

const folder = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const page = readFileSync(join(folder, "..", "..", "docs", "clients.md"), "utf8");
const documentedModel = "rag-demo-14m";
const documentedAddress = "http://127.0.0.1:8080";

/** [{name, language, code, output}] in the page's order. */
function snippetsOf(text) {
  const snippets = [];
  let section = "";
  for (const [, heading, language, code] of text.matchAll(/^## (.*)$|^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (heading !== undefined) {
      section = heading;
    } else if (language === "text") {
      assert.equal(snippets.at(-1).output, undefined, `two outputs in a row under ${section}`);
      snippets.at(-1).output = code;
    } else {
      snippets.push({ name: `${section}, snippet ${snippets.length + 1}`, language, code });
    }
  }
  return snippets;
}

const runners = {
  sh: { command: "bash", extension: "sh" },
  js: { command: process.execPath, extension: "mjs" },
  python: { command: "python3", extension: "py" },
};

/** The package that a snippet in Python needs and that is not there. */
function missingPackage({ language, code }) {
  if (language !== "python") return undefined;
  const [, name] = code.match(/^(?:from|import) (\w+)/m);
  return spawnSync("python3", ["-c", `import ${name}`]).status === 0 ? undefined : name;
}

describe("the snippets of docs/clients.md", () => {
  const snippets = snippetsOf(page);
  let server;
  before(async () => { server = await serve(); });
  after(async () => assert.equal(await server.stop(), 0));

  test("are there for every client", () => {
    const languages = snippets.map(({ language }) => language);
    for (const language of Object.keys(runners)) assert.ok(languages.includes(language), language);
    for (const { name, output } of snippets) assert.notEqual(output, undefined, `${name} has no output`);
  });

  for (const [index, snippet] of snippets.entries()) {
    const missing = missingPackage(snippet);
    test(snippet.name, { skip: missing && `Python has no package ${missing}` }, async () => {
      const { command, extension } = runners[snippet.language];
      const file = join(folder, `snippet-${process.pid}-${index}.${extension}`);
      assert.ok(snippet.code.includes(documentedAddress));
      await writeFile(file, snippet.code.replaceAll(documentedAddress, server.url).replaceAll(documentedModel, model));
      try {
        const { stdout, stderr, status } = spawnSync(command, [file], { encoding: "utf8", timeout: 60_000 });
        assert.equal(status, 0, stderr);
        assert.equal(stdout.trim(), snippet.output.trim());
      } finally {
        await rm(file);
      }
    });
  }
});
