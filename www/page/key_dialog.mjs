// The API key: asked for when the server wants one, kept in the tab's storage only.
import { byId } from "./dom.mjs";

const storageName = "anyslot-key";

export function currentKey() {
  return sessionStorage.getItem(storageName);
}

/** Asks the user for a key. Resolves to true when one was given, false when the user gave up. */
export function askForKey(reason) {
  const dialog = byId("key-dialog");
  byId("key-reason").textContent = reason;
  byId("key").value = "";
  dialog.returnValue = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "given"), { once: true });
  });
}

export function initKeyDialog() {
  const dialog = byId("key-dialog");
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(storageName, byId("key").value.trim());
    dialog.close("given");
  });
  byId("key-cancel").addEventListener("click", () => dialog.close());
}
