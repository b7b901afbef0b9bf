import assert from "node:assert/strict";
import { test } from "node:test";
import { visibleLine, visibleText } from "../../../www/page/visible_text.mjs";

test("characters that nobody would see become signs", () => {
  assert.equal(visibleText("a\u0000b\u001b[31mc\u007f\r"), "a\u2400b\u241b[31mc\u2421\u240d");
  assert.equal(visibleText("\u0085\u00ad\u200b\ufeff"), "[U+0085][U+00AD][U+200B][U+FEFF]");
  assert.equal(visibleText("user\u202Egpj.exe\u2066"), "user[U+202E]gpj.exe[U+2066]");
  assert.equal(visibleText("a\ud800b"), "a[U+D800]b");
});

test("text stays as it is", () => {
  for (const text of ["", "Zürich, 東京, שלום, 🙂", "two\nlines\tand a tab", "<b>bold</b> &amp;"]) {
    assert.equal(visibleText(text), text);
  }
});

test("on one line, tabs and line ends are signs too", () => {
  assert.equal(visibleLine("a\tb\nc"), "a\u2409b\u240ac");
});
