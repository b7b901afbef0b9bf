// Runs the tests of the page's modules that need no browser:  node run_modules.mjs
// Exits with 77, skipped, where Node.js is older than 20 and lacks what current browsers have.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const oldest = 20;
const version = Number(process.versions.node.split(".")[0]);
if (version < oldest) {
  console.error(`Node.js ${version} is too old for the page's modules, which need ${oldest}`);
  process.exit(77);
}
const folder = join(dirname(fileURLToPath(import.meta.url)), "modules");
const tests = readdirSync(folder).filter((name) => name.endsWith(".test.mjs"));
const { status } = spawnSync(process.execPath, ["--test", ...tests.map((name) => join(folder, name))], { stdio: "inherit" });
process.exit(status ?? 1);
