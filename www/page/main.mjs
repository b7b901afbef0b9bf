// The page: wires its parts together.
import { ApiError, ask, needsKey, servedModel } from "./api.mjs";
import { Cards } from "./cards.mjs";
import { Documents } from "./documents.mjs";
import { announce, byId, chip, element } from "./dom.mjs";
import { askForKey, currentKey, initKeyDialog } from "./key_dialog.mjs";
import { rememberRace } from "./past_races.mjs";
import { startPoolStrip } from "./pool_strip.mjs";
import { hideProblem, showProblem, watchForProblems } from "./problem.mjs";
import { newSalt, runRace } from "./race.mjs";
import { RaceView } from "./race_view.mjs";
import { sampleDocuments, sampleQuestions } from "./samples.mjs";

const firstPieceAfter = 500; // ms: answers that come sooner are seen in the replay only

const documents = new Documents(sampleDocuments);
const view = new RaceView(["lazy", "prefix"]);
let before = [...documents.all.slice(5), ...documents.all.slice(0, 5)]; // what both methods have read; at first, in another order
let salt = newSalt();
let running = null; // the AbortController of the race that runs
let refreshPool = () => {};

watchForProblems();
initKeyDialog();
const cards = new Cards(documents);

function showBefore() {
  byId("before").replaceChildren(...(before.length > 0 ? before.map(chip) : ["no documents"]));
}

function showSamples() {
  byId("samples").append("Try ", ...sampleQuestions.map(({ name, question }) => {
    const button = element("button", "", name, element("span", "unseen", `: ${question}`));
    button.type = "button";
    button.title = question;
    button.addEventListener("click", () => {
      byId("question").value = question;
      byId("question").focus();
    });
    return button;
  }));
  byId("question").value = sampleQuestions[0].question;
}

function showModel(model) {
  byId("model").textContent = `${model.id}, default method ${model.default_method}`;
  view.blockTrained = model.block_trained;
}

/** Runs `work`, and again with a new key for as long as the server wants another one and the user gives it. */
async function withKey(work) {
  for (;;) {
    try {
      return await work(currentKey());
    } catch (error) {
      if (error.status !== 401) throw error;
      const reason = currentKey() ? "The server does not know this key." : "This server answers only those who have one of its keys.";
      if (!(await askForKey(reason))) throw new ApiError(401, "The server wants an API key; give it with the button API key.");
    }
  }
}

/** Runs `work` and shows why it failed, if it did; undefined then. */
async function orShowProblem(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") showProblem(error.message);
    return undefined;
  }
}

async function connect() {
  byId("key-button").hidden = !(await needsKey());
  if (!byId("key-button").hidden && !currentKey()) {
    await askForKey("This server answers only those who have one of its keys.");
    if (!currentKey()) return;
  }
  showModel(await withKey((key) => servedModel({ key })));
  hideProblem();
}

function setupOf(model) {
  const start = byId("ask").elements.start.value;
  return {
    model: model.id,
    question: byId("question").value,
    documents: documents.all,
    before,
    start,
    methods: view.methods,
    maxTokens: byId("max-tokens").valueAsNumber,
  };
}

async function measure(signal) {
  const model = await withKey((key) => servedModel({ key, signal }));
  showModel(model);
  const setup = setupOf(model);
  if (setup.start === "cold") salt = newSalt();
  const came = ["", ""];
  let began = 0;
  return runRace(setup, {
    salt,
    ask: (body, onPiece) => ask(body, { key: currentKey(), signal, onPiece }),
    onStage: (stage) => {
      began = performance.now();
      view.showStage(stage);
      refreshPool();
    },
    onPiece: (lane, { text }) => {
      came[lane] += text;
      if (performance.now() - began > firstPieceAfter) view.showArriving(lane, came[lane]);
    },
  });
}

function setRunning(controller) {
  running = controller;
  byId("go").textContent = controller ? "Stop" : "Race";
}

async function race() {
  hideProblem();
  setRunning(new AbortController());
  view.begin();
  const { signal } = running;
  const result = await orShowProblem(() => measure(signal));
  setRunning(null);
  refreshPool();
  if (!result) return view.fail(signal.aborted ? "The race was stopped." : "The race broke off.");
  before = result.documents;
  showBefore();
  view.show(result);
  rememberRace(result, (past) => view.show(past));
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.abort();
  else race();
});
byId("question").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("ask").requestSubmit();
});
byId("shuffle").addEventListener("click", () => {
  documents.shuffle();
  announce("The documents have a new order.");
});
byId("restore").addEventListener("click", () => {
  documents.reset(sampleDocuments);
  announce("The sample documents are back.");
});
byId("add").addEventListener("click", () => cards.openNew());
byId("key-button").addEventListener("click", async () => {
  if (await askForKey("The server's answers depend on the key: each key has documents of its own.")) await orShowProblem(connect);
});

showSamples();
showBefore();
refreshPool = startPoolStrip();
orShowProblem(connect);
