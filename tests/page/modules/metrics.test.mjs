import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMetrics, poolState } from "../../../www/page/metrics.mjs";

const page = `# HELP anyslot_pool_blocks Blocks of the KV pool by state
# TYPE anyslot_pool_blocks gauge
anyslot_pool_blocks{state="free"} 90
anyslot_pool_blocks{state="cached"} 7
anyslot_pool_blocks{state="in_use"} 3
anyslot_cached_documents 5
anyslot_running_requests 1
anyslot_waiting_requests 2

anyslot_document_hit_tokens_total 30
anyslot_document_miss_tokens_total 10
`;

test("samples have names, labels and values", () => {
  const text = 'a_bucket{le="+Inf",x="say \\"hi\\"\\\\\\n"} 3\nb 1.5e-3\n  c -Inf 1700000000000\nd{} NaN\n';
  assert.deepEqual(parseMetrics(text), [
    { name: "a_bucket", labels: { le: "+Inf", x: 'say "hi"\\\n' }, value: 3 },
    { name: "b", labels: {}, value: 0.0015 },
    { name: "c", labels: {}, value: -Infinity },
    { name: "d", labels: {}, value: NaN },
  ]);
});

test("a page that is no metrics is refused", () => {
  assert.throws(() => parseMetrics("<html>Bad gateway</html>"), /not a metric/);
});

test("the pool's state and the hit ratio are read", () => {
  assert.deepEqual(poolState(parseMetrics(page)), {
    free: 90, cached: 7, inUse: 3, total: 100, documents: 5, running: 1, waiting: 2, hits: 30, asked: 40, hitRatio: 0.75,
  });
});

test("before the first document there is no hit ratio", () => {
  const idle = page.replace("hit_tokens_total 30", "hit_tokens_total 0").replace("miss_tokens_total 10", "miss_tokens_total 0");
  assert.equal(poolState(parseMetrics(idle)).hitRatio, null);
});

test("a metric that is missing is named", () => {
  assert.throws(() => poolState(parseMetrics("")), /anyslot_pool_blocks/);
});
