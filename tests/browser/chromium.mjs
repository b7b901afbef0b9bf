// The Chromium that the system has. Imports nothing that must be installed.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Its program: ANYSLOT_CHROMIUM, else the first of the usual names in PATH; undefined when there is none. */
export function findChromium() {
  if (process.env.ANYSLOT_CHROMIUM) return process.env.ANYSLOT_CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}
