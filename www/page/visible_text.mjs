// Text of documents and answers as it may be shown: characters that would be unseen, or that change how others are read,
// become visible signs.

const firstPicture = 0x2400; // Unicode has a picture of each control character up to space
const deletePicture = "\u2421";

// Controls (but tab and line feed), marks of direction, what has no width, lone halves of surrogate pairs.
const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu;

function signOf(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(firstPicture + code);
  if (code === 0x7f) return deletePicture;
  return `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
}

/** For places that keep tabs and line ends. */
export function visibleText(text) {
  return text.replace(unseen, signOf);
}

/** For places of one line. */
export function visibleLine(text) {
  return visibleText(text).replace(/[\t\n]/g, signOf);
}
