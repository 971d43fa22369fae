// The page: what is chosen, what runs, and what is shown of it.

const told = JSON.parse(document.getElementById("told").textContent);
const $ = (id) => document.getElementById(id);
const SLOTS = [{ name: "A", colour: "#cc3d12" }, { name: "B", colour: "#2563eb" }, { name: "C", colour: "#2d8a73" }];
const CONTROLS = [{ agent: "random", colour: "#777777" }, { agent: "constant", colour: "#6f7f99" }];
const FIELDS = [ // settings of spie.Sarsa: name, smallest, largest, what for
  ["alpha", 0, 1, "learning rate of Q"], ["gamma", 0, 1, "discount of Q"], ["beta", -1e6, 1e6, "scale of the bonus"],
  ["eta", 0.0001, 1, "learning rate of M and F"], ["gamma_sr", 0, 0.9999, "discount of M and F"],
  ["eta_pr", 0.0001, 1, "learning rate of N; empty: eta"], ["gamma_pr", 0, 0.9999, "discount of N; empty: gamma_sr"],
  ["epsilon", 0, 1, "chance of an action at random"], ["inverse_temperature", 0, 1e6, "of softmax: 0 is a random walk"],
  ["q0", -1e6, 1e6, "Q starts at this value"],
];
const OVERLAYS = {
  visits: ["visits", (lane) => lane.visits],
  Q: ["largest Q[s, a]", (lane) => perState(lane, (s) => largestQ(lane, s))],
  M_rows: ["row sums of M", (lane) => lane.M_rows],
  M_columns: ["column sums of M", (lane) => lane.M_columns],
  F_rows: ["row sums of F", (lane) => lane.F_rows],
  F_columns: ["column sums of F", (lane) => sumsOver(lane.F, lane.mdp.S)],
  N_rows: ["row sums of N", (lane) => sumsOver(lane.N, lane.mdp.S)], // N is kept by its columns
  N_columns: ["column sums of N", (lane) => lane.N_columns],
  bonus: ["bonus of the next step", (lane) => nextBonus(lane)],
  none: ["nothing", () => null],
};
const FRAME_BUDGET = 5; // milliseconds of steps a frame

const state = {
  world: "cluster-simple", board: null, task: "explore", bumps: true, seed: 0, overlay: "visits", arrows: true, speed: 2.5,
  agents: [{ name: "sarsa-srr", settings: {} }, { name: "sarsa-sr", settings: {} }, { name: "sarsa", settings: {} }],
};
let world = null; // what runs, made of the board or of a preset
let runs = []; // those of the agents, then those of the controls
let playing = false, looked = -1, whose = 0, dirty = true, budget = 0, lastFrame = 0, numbersAt = 0;
const frameTimes = [];

function perState(lane, of) {
  return Float64Array.from({ length: lane.mdp.S }, (_, s) => of(s));
}

/** For each place in a row of a matrix, the sum over all rows. */
function sumsOver(matrix, S) {
  const sums = new Float64Array(S);
  for (let i = 0; i < matrix.length; i++) sums[i % S] += matrix[i];
  return sums;
}

function largestQ(lane, s) {
  let best = -Infinity;
  for (let a = 0; a < lane.mdp.A; a++) if ((lane.mdp.available[s] >>> a) & 1) best = Math.max(best, lane.Q[s * lane.mdp.A + a]);
  return best;
}

/** What each state next to the agent would pay if it were entered now. */
function nextBonus(lane) {
  const { mdp, s } = lane, values = new Float64Array(mdp.S).fill(NaN);
  for (let a = 0; a < mdp.A; a++) {
    for (let k = 0; k < mdp.K; k++) {
      const s_next = mdp.next[(s * mdp.A + a) * mdp.K + k], q = lane.quantities(s, s_next);
      q.visits_next += 1; // this arrival counts
      if ((mdp.available[s] >>> a) & 1) values[s_next] = REWARDS[lane.settings.reward].of(q);
    }
  }
  return values;
}

/** One agent on one seed, with the steps at which it found new states, and its path. */
class Run {
  constructor(name, settings, slot) {
    Object.assign(this, { name, slot, S: world.mdp.S });
    this.lane = new Lane(world.mdp, { ...told.agents[name], ...settings }, state.seed, slot !== null);
    this.found = [0];
    this.path = { states: [this.lane.s], actions: [], bonuses: [], rewards: [] };
  }

  step(action = -1) {
    const { lane, path } = this, seen = lane.seen, done = lane.step(action);
    if (!done) return null;
    for (let i = seen; i < lane.seen; i++) this.found.push(lane.t);
    path.states.push(lane.s);
    path.actions.push(done.a);
    path.bonuses.push(done.bonus);
    path.rewards.push(done.r);
    return done;
  }

  stepsTo(share) {
    const n = Math.ceil(share * this.S - 1e-9);
    return this.found.length >= n ? this.found[n - 1] : null;
  }
}

function say(text, bad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", bad);
}

/** Do something; a mistake is said, and everything stays as it was. */
function attempt(action) {
  try {
    action();
    return true;
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    say(error.message, true);
    return false;
  }
}

function makeWorld() {
  if (state.board) return worldOfBoard(state.board, state.task, state.bumps);
  return worldOfTables(told.worlds.find((one) => one.name === state.world).tables);
}

/** Begin anew with what is chosen now. */
function restart() {
  world = makeWorld();
  runs = state.agents.map((agent, i) => new Run(agent.name, agent.settings, SLOTS[i]));
  runs.push(...CONTROLS.map((control) => new Run(control.agent, {}, null)));
  looked = -1;
  budget = 0;
  $("play").disabled = false;
  beginWalk();
  remember();
  dirty = true;
}

/** After a change: begin again; where that is not possible, say why and let nothing run. */
function renew(text = "") {
  say(text);
  if (attempt(restart)) return;
  setPlaying(false);
  $("play").disabled = true;
  remember();
  dirty = true;
}

function advance(n) {
  for (let i = 0; i < n; i++) for (const run of runs) run.step();
  dirty = true;
}

// The address holds the maze and the settings, so that a link is a figure.

function encode() {
  const agents = state.agents.map(({ name, settings }) => [name, ...Object.entries(settings).map(([key, value]) => `${key}:${value}`)].join(","));
  const words = new URLSearchParams();
  if (state.board) words.set("map", state.board.toText().replaceAll("\n", "/"));
  else words.set("world", state.world);
  words.set("task", state.task);
  words.set("bumps", state.bumps ? "1" : "0");
  words.set("seed", String(state.seed));
  words.set("agents", agents.join(";"));
  words.set("show", state.overlay);
  return words.toString();
}

function remember() {
  history.replaceState(null, "", `#${encode()}`);
}

/** Take over what an address says; a mistake in it changes nothing. */
function decode(text) {
  const words = new URLSearchParams(text), next = { ...state };
  if (words.has("map")) next.board = Board.fromText(words.get("map").replaceAll("/", "\n"));
  else if (words.has("world")) Object.assign(next, chosenWorld(words.get("world")));
  if (words.has("task")) next.task = one(words.get("task"), ["explore", "goal", "moving-goal"], "task");
  if (words.has("bumps")) next.bumps = one(words.get("bumps"), ["0", "1"], "bumps") === "1";
  if (words.has("seed")) next.seed = readSeed(words.get("seed"));
  if (words.has("show")) next.overlay = one(words.get("show"), Object.keys(OVERLAYS), "show");
  if (words.has("agents")) next.agents = words.get("agents").split(";").slice(0, SLOTS.length).map(readAgent);
  if (next.board) worldOfBoard(next.board, next.task, next.bumps);
  Object.assign(state, next);
}

function one(word, known, what) {
  if (!known.includes(word)) throw new Mistake(`The address says ${what}=${word}; known: ${known.join(", ")}.`);
  return word;
}

function readSeed(text) {
  const seed = Number(text);
  if (!/^\d+$/.test(String(text)) || !Number.isSafeInteger(seed)) throw new Mistake(`The seed must be a whole number from 0 to 9007199254740991, not "${text}".`);
  return seed;
}

function readAgent(text) {
  const [name, ...pairs] = text.split(",");
  one(name, Object.keys(told.agents), "agents");
  const settings = Object.fromEntries(pairs.map((pair) => {
    const [key, value] = pair.split(":");
    return [key, readSetting(key, value)];
  }));
  return { name, settings };
}

function readSetting(key, text) {
  if (key === "policy") return one(text, ["epsilon-greedy", "softmax"], "policy");
  if (key === "reward") return one(text, Object.keys(REWARDS), "reward");
  const field = FIELDS.find(([name]) => name === key), value = Number(text);
  if (!field) throw new Mistake(`There is no setting "${key}".`);
  if (text === "" || !(value >= field[1] && value <= field[2])) throw new Mistake(`${key} must lie between ${field[1]} and ${field[2]}, not "${text}".`);
  return value;
}

function chosenWorld(name) {
  const found = told.worlds.find((one) => one.name === name);
  if (!found) throw new Mistake(`There is no maze "${name}".`);
  return { world: name, board: found.map ? Board.fromText(found.map) : null, ...(found.map ? {} : { task: "explore" }), ...found.options };
}

// What is shown

function fit(canvas) {
  const side = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
  if (side > 0 && canvas.width !== side) {
    canvas.width = side;
    canvas.height = canvas.id === "curves" ? Math.round(side / 3) : side;
  }
  canvas.dataset.ink = getComputedStyle(document.body).color;
}

function show() {
  const [, valuesOf] = OVERLAYS[state.overlay], drawn = runs.slice(0, state.agents.length);
  const values = drawn.map(({ lane }) => (looked >= 0 ? placeField(lane, looked) : valuesOf(lane)));
  const all = values.filter((x) => x !== null).map(extent), scale = all.length ? [Math.min(...all.map((e) => e[0])), Math.max(...all.map((e) => e[1]))] : null;
  drawn.forEach((run, i) => {
    const canvas = $(`arena-${i}`), { lane } = run;
    fit(canvas);
    drawWorld(canvas, world, {
      values: values[i], scale, agent: lane.s, marked: looked, paths: overlay.shown,
      arrows: state.arrows && looked < 0 ? Int32Array.from({ length: world.mdp.S }, (_, s) => lane.greedy(s)) : null,
    });
    $(`caption-${i}`).textContent = lane.over || caption(run);
  });
  $("scale").textContent = scale && Number.isFinite(scale[0]) ? `one scale for all: light ${short(scale[0])} to dark ${short(scale[1])}` : "";
  if (!playing || performance.now() - numbersAt > 100) showNumbers(); // ten times a second is as fast as one reads
}

function placeField(lane, s) {
  return perState(lane, (x) => lane.M[x * lane.mdp.S + s]);
}

function caption(run) {
  const { lane } = run, last = lane.last;
  return `${lane.t.toLocaleString("en")} steps, ${Math.round((100 * lane.seen) / run.S)} % of ${run.S} states` + (last ? `; last bonus ${short(last.bonus)}` : "");
}

function short(x) {
  return Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(3)));
}

function showNumbers() {
  numbersAt = performance.now();
  const canvas = $("curves"), ink = getComputedStyle(document.body).color;
  fit(canvas);
  const curves = runs.map((run, i) => ({
    name: run.slot ? `${run.slot.name}: ${run.name}` : `${run.name} (control)`, colour: run.slot ? run.slot.colour : CONTROLS[i - state.agents.length].colour,
    dash: DASHES[run.slot ? i : i - state.agents.length + 3] || [], control: !run.slot, found: run.found, now: run.lane.t, S: run.S, run,
  }));
  drawCurves(canvas, curves, ink);
  const body = $("numbers").tBodies[0];
  while (body.rows.length > curves.length) body.deleteRow(-1);
  curves.forEach(({ name, colour, dash, run }, i) => {
    const row = body.rows[i] || newRow(body);
    if (row.dataset.name !== name) {
      row.dataset.name = name;
      row.cells[0].textContent = name;
      row.cells[0].prepend(swatch(colour, dash));
    }
    const to90 = run.stepsTo(0.9);
    [run.lane.t.toLocaleString("en"), ((100 * run.lane.seen) / run.S).toFixed(1), to90 === null ? "not yet" : to90.toLocaleString("en"), run.lane.episode, short(run.lane.totalReward)]
      .forEach((value, j) => { row.cells[j + 1].textContent = value; });
  });
}

function newRow(body) {
  const row = body.insertRow();
  const head = document.createElement("th");
  head.scope = "row";
  row.append(head);
  for (let j = 0; j < 5; j++) row.insertCell();
  return row;
}

function swatch(colour, dash) {
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg"), stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
  picture.setAttribute("class", "swatch");
  picture.setAttribute("viewBox", "0 0 32 12");
  picture.setAttribute("aria-hidden", "true");
  for (const [key, value] of Object.entries({ x1: 0, y1: 6, x2: 32, y2: 6, stroke: colour, "stroke-width": 3, "stroke-dasharray": dash.join(" ") })) stroke.setAttribute(key, value);
  picture.append(stroke);
  return picture;
}

function frame(now) {
  const begun = performance.now();
  if (playing) {
    const seconds = Math.min(0.1, (now - lastFrame) / 1000);
    budget += seconds * 10 ** state.speed;
    const until = begun + FRAME_BUDGET;
    while (budget >= 1 && performance.now() < until) {
      const n = Math.min(Math.floor(budget), 20);
      advance(n);
      budget -= n;
    }
    budget = Math.min(budget, 10 ** state.speed); // what could not be done is not made up for
  }
  lastFrame = now;
  if (dirty) {
    dirty = false;
    drawBoard();
    if (world) show();
    showWalk();
    frameTimes.push(performance.now() - begun);
    if (frameTimes.length > 600) frameTimes.shift();
  }
  requestAnimationFrame(frame);
}

function setPlaying(on) {
  playing = on;
  $("play").textContent = on ? "Pause" : "Play";
  $("play").setAttribute("aria-pressed", String(on));
  dirty = true;
}
