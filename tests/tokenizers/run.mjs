// Runs the tests of this folder:  node run.mjs PROGRAM    (PROGRAM: text_lines)
// Exits with 77, skipped, when the packages are not installed (scripts/install-clients.sh), but fails when the environment has
// CI=true and they can be had.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
if (!existsSync(join(folder, "node_modules", ".package-lock.json"))) {
  console.error("the tokenizers are not installed; do it with: scripts/install-clients.sh");
  const canHave = Number(process.versions.node.split(".")[0]) >= 20;
  process.exit(process.env.CI === "true" && canHave ? 1 : 77);
}
const tests = readdirSync(folder).filter((name) => name.endsWith(".test.mjs"));
const { status } = spawnSync(process.execPath, ["--test", ...tests.map((name) => join(folder, name))], {
  stdio: "inherit",
  env: { ...process.env, ANYSLOT_TEXT_LINES: process.argv[2] },
});
process.exit(status ?? 1);
