// A served model for the tests of this folder.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const { ANYSLOT_PROGRAM: program, ANYSLOT_MODEL: folder } = process.env;

export const model = "served";

export const documents = [
  { id: "a", title: "Lornaburg", text: "Lornaburg is a city in Japan. The river Masa flows through it." },
  { id: "b", title: "Marvale Systems", text: "Marvale Systems is a railway company. It was founded by Gardrael Seric." },
  { id: "c", title: "Silver Harbor", text: "Silver Harbor is a fantasy novel by Maon Melbastein, published in 1983." },
];

/** One about each document. */
export const questions = ["Which river flows through Lornaburg?", "Who founded Marvale Systems?", "Who wrote Silver Harbor?"];
export const answers = ["Masa", "Gardrael Seric", "Maon Melbastein"];

/** Starts `anyslot serve` on a free port and waits until it is ready. */
export async function serve(...options) {
  const server = spawn(
    program,
    ["serve", "--model", folder, "--port", "0", "--served-model-name", model, "--dtype", "float32",
      "--kv-cache", "64MiB", "--log-level", "warning", ...options],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const exited = once(server, "exit");
  const lines = createInterface({ input: server.stdout });
  const first = await Promise.race([once(lines, "line"), exited.then(([code]) => { throw new Error(`exit ${code}`); })]);
  let terminated = false;
  const url = first[0].match(/ at (\S+)$/)[1];
  return {
    url,
    baseURL: `${url}/v1`,
    /** The value of a metric without labels. */
    async metric(name) {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(text.match(new RegExp(`^${name} (.*)$`, "m"))[1]);
    },
    /** Returns when nothing runs or waits. */
    async idle() {
      while ((await this.metric("anyslot_running_requests")) + (await this.metric("anyslot_waiting_requests")) > 0);
    },
    terminate() {
      if (!terminated) server.kill("SIGTERM");
      terminated = true;
    },
    /** Ends the server and returns its exit code. */
    async stop() {
      this.terminate();
      return (await exited)[0];
    },
  };
}
