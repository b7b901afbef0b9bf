// Prometheus's text format, as far as the page reads it.

const line = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const label = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const escapes = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

function labelsOf(text = "") {
  const unescaped = (value) => value.replace(/\\[\\"n]/g, (sequence) => escapes[sequence]);
  return Object.fromEntries([...text.matchAll(label)].map(([, name, value]) => [name, unescaped(value)]));
}

function numberOf(text) {
  if (/^[+-]?Inf$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return Number(text);
}

/** The samples, each {name, labels, value}. Throws on a line that is none. */
export function parseMetrics(text) {
  return text
    .split("\n")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "" && !entry.startsWith("#"))
    .map((entry) => {
      const match = entry.match(line);
      if (!match) throw new Error(`not a metric: ${entry}`);
      return { name: match[1], labels: labelsOf(match[2]), value: numberOf(match[3]) };
    });
}

function valueOf(samples, name, labels = {}) {
  const sample = samples.find(
    (each) => each.name === name && Object.entries(labels).every(([key, value]) => each.labels[key] === value),
  );
  if (!sample) throw new Error(`the metrics lack ${name}`);
  return sample.value;
}

/** What the strip shows, from the samples. `hitRatio` is null before the first document. */
export function poolState(samples) {
  const blocks = (state) => valueOf(samples, "anyslot_pool_blocks", { state });
  const [free, cached, inUse] = ["free", "cached", "in_use"].map(blocks);
  const hits = valueOf(samples, "anyslot_document_hit_tokens_total");
  const misses = valueOf(samples, "anyslot_document_miss_tokens_total");
  return {
    free,
    cached,
    inUse,
    total: free + cached + inUse,
    documents: valueOf(samples, "anyslot_cached_documents"),
    running: valueOf(samples, "anyslot_running_requests"),
    waiting: valueOf(samples, "anyslot_waiting_requests"),
    hits,
    asked: hits + misses,
    hitRatio: hits + misses > 0 ? hits / (hits + misses) : null,
  };
}
