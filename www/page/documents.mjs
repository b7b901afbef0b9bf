// The documents of the page. A document is never changed in place, so that races can keep those that they were run with.
import { letterOf, moved, shuffled } from "./order.mjs";

/** A document is {letter, hue, title, text}; its letter stays with it wherever it stands. */
export class Documents {
  #all = [];
  #created = 0;
  #listeners = [];

  constructor(samples = []) {
    this.#all = samples.map((sample) => this.#create(sample));
  }

  get all() {
    return this.#all;
  }

  find(letter) {
    return this.#all.find((document) => document.letter === letter);
  }

  indexOf(letter) {
    return this.#all.findIndex((document) => document.letter === letter);
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }

  add({ title, text }) {
    const document = this.#create({ title, text });
    this.#set([...this.#all, document]);
    return document;
  }

  edit(letter, { title, text }) {
    this.#set(this.#all.map((document) => (document.letter === letter ? { ...document, title, text } : document)));
  }

  remove(letter) {
    this.#set(this.#all.filter((document) => document.letter !== letter));
  }

  move(letter, to) {
    this.#set(moved(this.#all, this.indexOf(letter), to));
  }

  shuffle(random) {
    this.#set(shuffled(this.#all, random));
  }

  reset(samples) {
    this.#created = 0;
    this.#set(samples.map((sample) => this.#create(sample)));
  }

  #create({ title, text }) {
    const number = this.#created++;
    return { letter: letterOf(number), hue: hueOf(number), title, text };
  }

  #set(all) {
    this.#all = all;
    for (const listener of this.#listeners) listener();
  }
}

// Steps of the golden angle: however many documents there are, neighbours differ.
function hueOf(number) {
  return Math.round((25 + number * 137.508) % 360);
}

/** What to call a document: its title, or how its text begins. */
export function nameOf({ title, text }) {
  if (title) return title;
  return text.length > 30 ? `${text.slice(0, 30)}…` : text;
}
