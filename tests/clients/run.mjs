// Runs the tests of this folder:  node run.mjs PROGRAM MODEL-FOLDER
// Exits with 77, skipped, when the clients are not installed (scripts/install-clients.sh), but fails when the environment has
// CI=true and Node.js is new enough for them: there they can be had.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
if (!existsSync(join(folder, "node_modules", ".package-lock.json"))) {
  console.error("the clients are not installed; do it with: scripts/install-clients.sh");
  const canHave = Number(process.versions.node.split(".")[0]) >= 20;
  process.exit(process.env.CI === "true" && canHave ? 1 : 77);
}
const [program, model] = process.argv.slice(2);
const tests = readdirSync(folder).filter((name) => name.endsWith(".test.mjs"));
const { status } = spawnSync(process.execPath, ["--test", ...tests.map((name) => join(folder, name))], {
  stdio: "inherit",
  env: { ...process.env, ANYSLOT_PROGRAM: program, ANYSLOT_MODEL: model, LANGSMITH_TRACING: "false" },
});
process.exit(status ?? 1);
