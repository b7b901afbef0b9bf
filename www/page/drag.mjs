// Dragging the cards of a list into another order, by mouse, pen or finger.
import { prefersStill } from "./dom.mjs";

const threshold = 4; // px that a press may tremble
const edge = 70; // px from the window's edges within which it scrolls
const scrollStep = 12; // px per frame

/** One drag of one card, from the press to the drop. */
class Drag {
  #card;
  #list;
  #move;
  #pressedAt;
  #pointerY;
  #firstIndex;
  #firstTop;
  #scrolledAtStart = scrollY;
  #frame = 0;
  begun = false;

  constructor(card, list, move, y) {
    this.#card = card;
    this.#list = list;
    this.#move = move;
    this.#pressedAt = y;
    this.#pointerY = y;
    this.#firstIndex = this.#index();
    this.#firstTop = card.offsetTop;
  }

  #index() {
    return [...this.#list.children].indexOf(this.#card);
  }

  follow(y) {
    this.#pointerY = y;
    if (!this.begun && Math.abs(y - this.#pressedAt) < threshold) return;
    if (!this.begun) this.#begin();
    this.#place();
  }

  #begin() {
    this.begun = true;
    this.#card.classList.add("dragged");
    const scroll = () => {
      const up = this.#pointerY < edge ? -1 : 0;
      const down = this.#pointerY > innerHeight - edge ? 1 : 0;
      if (up + down !== 0) {
        scrollBy(0, (up + down) * scrollStep);
        this.#place();
      }
      this.#frame = requestAnimationFrame(scroll);
    };
    this.#frame = requestAnimationFrame(scroll);
  }

  /** The card follows the pointer, and passes each neighbour whose middle its edge has crossed. */
  #place() {
    const card = this.#card;
    const top = this.#firstTop + this.#pointerY - this.#pressedAt + scrollY - this.#scrolledAtStart;
    const middle = (other) => other.offsetTop + other.offsetHeight / 2;
    for (;;) {
      const [before, after] = [card.previousElementSibling, card.nextElementSibling];
      if (after && top + card.offsetHeight > middle(after)) this.#pass(after, 1);
      else if (before && top < middle(before)) this.#pass(before, -1);
      else break;
    }
    card.style.transform = `translateY(${top - card.offsetTop}px)`;
  }

  #pass(other, step) {
    const top = other.offsetTop;
    this.#move(this.#card, this.#index() + step);
    if (prefersStill()) return;
    other.animate([{ transform: `translateY(${top - other.offsetTop}px)` }, { transform: "none" }], { duration: 140, easing: "ease-out" });
  }

  end({ drop }) {
    cancelAnimationFrame(this.#frame);
    this.#card.classList.remove("dragged");
    this.#card.style.transform = "";
    if (!drop && this.#index() !== this.#firstIndex) this.#move(this.#card, this.#firstIndex);
  }
}

/**
 * Lets the cards (.card) of `list` be dragged: by their .handle, and with a mouse by whatever is no control. `move(card,
 * index)` must put a card there without taking the dragged one out of the list; `dropped(card)` is called at the end.
 * Escape takes a drag back.
 */
export function makeDraggable(list, { move, dropped }) {
  let drag = null;

  function cardOf(event) {
    const onHandle = event.target.closest(".handle");
    if (event.button !== 0 || (event.pointerType !== "mouse" && !onHandle)) return null;
    if (!onHandle && event.target.closest("button, select, input, textarea, form")) return null;
    return event.target.closest(".card");
  }

  function finish(card, drop) {
    const { begun } = drag;
    drag.end({ drop });
    drag = null;
    if (begun) dropped(card);
  }

  list.addEventListener("pointerdown", (event) => {
    const card = cardOf(event);
    if (!card || drag) return;
    drag = new Drag(card, list, move, event.clientY);
    card.setPointerCapture(event.pointerId);
    if (!event.target.closest(".handle")) event.preventDefault(); // no text is selected
    const until = new AbortController();
    const listen = (type, listener) => addEventListener(type, listener, { signal: until.signal });
    const end = (drop) => {
      until.abort();
      finish(card, drop);
    };
    listen("pointermove", (moved) => drag.follow(moved.clientY));
    listen("pointerup", () => end(true));
    listen("pointercancel", () => end(false));
    listen("keydown", (pressed) => {
      if (pressed.key === "Escape") end(false);
    });
  });
}
