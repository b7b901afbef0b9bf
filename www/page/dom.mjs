// The little that the page's parts need to build elements. Texts only ever become text, never markup.

export function byId(id) {
  return document.getElementById(id);
}

/** A copy of the one element in the template `id`. */
export function fromTemplate(id) {
  return byId(id).content.firstElementChild.cloneNode(true);
}

/** An element of `name` and class with texts and elements in it. */
export function element(name, className, ...children) {
  const created = document.createElement(name);
  if (className) created.className = className;
  created.append(...children);
  return created;
}

export function setHue(of, hue) {
  of.style.setProperty("--hue", hue);
}

export function setWidth(of, ratio) {
  of.style.width = `${(Math.max(0, Math.min(ratio, 1)) * 100).toFixed(3)}%`;
}

/** The letter of a document on its colour. */
export function chip({ letter, hue }) {
  const created = element("b", "chip", letter);
  setHue(created, hue);
  return created;
}

/** Whether the user asked for little motion. */
export function prefersStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Tells users of a screen reader what others see happen. */
export function announce(text) {
  byId("announcer").textContent = text;
}
