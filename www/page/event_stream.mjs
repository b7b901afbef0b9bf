// Server-sent events out of the pieces of text in which they arrive.

export class EventStream {
  #unread = "";

  /** The data of the events that end in what has come so far. */
  push(text) {
    this.#unread += text;
    const events = this.#unread.split(/\r?\n\r?\n/);
    this.#unread = events.pop();
    return events.map(dataOf).filter((data) => data !== null);
  }
}

function dataOf(event) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  if (lines.length === 0) return null;
  return lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}
