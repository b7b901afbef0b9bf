// Runs one test of this folder:  node run.mjs NAME PROGRAM MODEL-FOLDER   (NAME.test.mjs)
// Exits with 77, skipped, where Node.js is older than the packages need. Where the packages (scripts/install-clients.sh) or
// Chromium (scripts/install-deps.sh --dev) are missing, it exits with 77 too, but fails when the environment has CI=true:
// there both can be had, and a page that nobody opened must not pass.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findChromium } from "./chromium.mjs";

const folder = dirname(fileURLToPath(import.meta.url));

function stop(code, message) {
  console.error(message);
  process.exit(code);
}

function lacks(message) {
  stop(process.env.CI === "true" ? 1 : 77, message);
}

const { engines } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const oldest = Number(engines.node.match(/\d+/)[0]);
const version = Number(process.versions.node.split(".")[0]);
if (version < oldest) stop(77, `Node.js ${version} is too old for the packages of this folder, which need ${oldest}`);
if (!existsSync(join(folder, "node_modules", ".package-lock.json"))) {
  lacks("the packages are not installed; do it with: scripts/install-clients.sh");
}
if (!findChromium()) {
  lacks("there is no Chromium; install it with: scripts/install-deps.sh --dev, or name one in ANYSLOT_CHROMIUM");
}

const [name, program, model] = process.argv.slice(2);
const { status } = spawnSync(process.execPath, ["--test", join(folder, `${name}.test.mjs`)], {
  stdio: "inherit",
  env: { ...process.env, ANYSLOT_PROGRAM: program, ANYSLOT_MODEL: model },
});
process.exit(status ?? 1);
