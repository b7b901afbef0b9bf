// The methods that the server knows (docs/design.md, section 3).

/** alone: documents are encoded without what stands before them, so that a copy fits every slot. */
export const methods = {
  lazy: { alone: true, note: "one cached copy of each document fits every slot" },
  block: { alone: true, note: "each request copies the cached documents and turns their keys" },
  mepic: { alone: true, note: "one cached copy of each document, turned anew at every step" },
  prefix: { alone: false, note: "reuses only what begins like an earlier prompt" },
  full: { alone: false, note: "computes everything, every time" },
};
