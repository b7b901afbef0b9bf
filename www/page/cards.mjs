// The cards of the documents: their order, texts and controls.
import { openEditor } from "./card_editor.mjs";
import { nameOf } from "./documents.mjs";
import { announce, byId, element, fromTemplate, setHue } from "./dom.mjs";
import { makeDraggable } from "./drag.mjs";
import { placeAfterKey } from "./order.mjs";
import { visibleLine, visibleText } from "./visible_text.mjs";

function letterOn(card) {
  return card.dataset.letter;
}

/** Puts the nodes of a list into an order without taking `held` out of the document: that would end its drag or focus. */
function arrange(list, nodes, held) {
  for (const [i, node] of nodes.entries()) {
    if (node === held) {
      while (list.children[i] !== held) list.append(list.children[i]);
    } else if (list.children[i] !== node) {
      list.insertBefore(node, list.children[i] ?? null);
    }
  }
}

export class Cards {
  #list = byId("cards");
  #documents;
  #cards = new Map(); // of a letter

  constructor(documents) {
    this.#documents = documents;
    documents.onChange(() => this.#render());
    makeDraggable(this.#list, {
      move: (card, index) => documents.move(letterOn(card), index),
      dropped: (card) => this.#announcePlace(letterOn(card)),
    });
    this.#render();
  }

  /** Opens the form for a new document below the cards. */
  openNew() {
    const place = byId("new-document");
    if (place.hasChildNodes()) return place.querySelector("input").focus();
    openEditor(place, null, (result) => {
      if (result) {
        const { letter } = this.#documents.add(result);
        this.#announcePlace(letter);
      }
      byId("add").focus();
    });
  }

  #render() {
    const all = this.#documents.all;
    const letters = new Set(all.map(({ letter }) => letter));
    for (const [letter, card] of this.#cards) {
      if (letters.has(letter)) continue;
      card.remove();
      this.#cards.delete(letter);
    }
    const cards = all.map(({ letter }) => this.#cards.get(letter) ?? this.#create(letter));
    const held = this.#list.querySelector(".dragged") ?? document.activeElement.closest(".card");
    arrange(this.#list, cards, held);
    all.forEach((document, index) => this.#fill(cards[index], document, index));
  }

  #create(letter) {
    const card = fromTemplate("card-template");
    card.dataset.letter = letter;
    card.querySelector(".handle").addEventListener("keydown", (event) => this.#moveByKey(event, letter));
    card.querySelector(".slot").addEventListener("change", (event) => this.#moveTo(letter, Number(event.target.value) - 1));
    card.querySelector(".edit").addEventListener("click", () => this.#edit(letter));
    card.querySelector(".remove").addEventListener("click", () => this.#remove(letter));
    this.#cards.set(letter, card);
    return card;
  }

  #fill(card, document, index) {
    const name = visibleLine(nameOf(document));
    const slots = this.#documents.all.length;
    setHue(card, document.hue);
    card.querySelector(".letter").textContent = document.letter;
    card.querySelector("h3").textContent = document.title ? name : "(no title)";
    card.querySelector(".about p").textContent = visibleText(document.text);
    const place = `slot ${index + 1} of ${slots}`;
    card.querySelector(".handle").setAttribute("aria-label", `${document.letter}, ${name}: ${place}, move with the arrow keys`);
    card.querySelector(".edit").setAttribute("aria-label", `Edit ${name}`);
    card.querySelector(".remove").setAttribute("aria-label", `Remove ${name}`);
    const slot = card.querySelector(".slot");
    slot.setAttribute("aria-label", `Slot of ${name}`);
    if (slot.length !== slots) {
      slot.replaceChildren(...this.#documents.all.map((_, i) => element("option", "", `${i + 1}`)));
    }
    slot.selectedIndex = index;
  }

  #announcePlace(letter) {
    const index = this.#documents.indexOf(letter);
    const name = visibleLine(nameOf(this.#documents.all[index]));
    announce(`${name} is in slot ${index + 1} of ${this.#documents.all.length}.`);
  }

  #moveTo(letter, index) {
    this.#documents.move(letter, index);
    this.#announcePlace(letter);
    this.#cards.get(letter).scrollIntoView({ block: "nearest" });
  }

  #moveByKey(event, letter) {
    const to = placeAfterKey(event.key, this.#documents.indexOf(letter), this.#documents.all.length);
    if (to === null || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.#moveTo(letter, to);
  }

  #edit(letter) {
    const card = this.#cards.get(letter);
    if (card.classList.contains("edited")) return;
    card.classList.add("edited");
    openEditor(card, this.#documents.find(letter), (result) => {
      card.classList.remove("edited");
      if (result) this.#documents.edit(letter, result);
      card.querySelector(".edit").focus();
    });
  }

  #remove(letter) {
    const card = this.#cards.get(letter);
    const next = card.nextElementSibling ?? card.previousElementSibling;
    const name = visibleLine(nameOf(this.#documents.find(letter)));
    this.#documents.remove(letter);
    announce(`${name} was removed.`);
    (next?.querySelector(".remove") ?? byId("add")).focus();
  }
}
