// Walking oneself, recorded paths laid over the maze, and files.

const overlay = { shown: [], text: "" };
let walking = false, you = null, trials = [];

/** Begin a path of one's own in the world of now; what was walked elsewhere is kept until it is forgotten or saved. */
function beginWalk() {
  const kept = trials.filter((trial) => trial.actions.length);
  if (kept.length && kept[0].world !== worldKey()) {
    say("The maze changed, so your path begins again; save a path before you draw.");
    trials = [];
  }
  you = walking ? new Lane(world.mdp, { reward: "none" }, state.seed, true) : null;
  if (you) newTrial();
  if (overlay.text && !attempt(() => layOver(overlay.text, overlay.name))) removeOverlay();
  showPad();
}

function worldKey() {
  return state.board ? `${state.board.toText()} ${state.task} ${state.bumps}` : state.world;
}

function newTrial() {
  trials = trials.filter((trial) => trial.actions.length);
  trials.push({ states: [you.s], actions: [], rewards: [], world: worldKey() });
}

function setWalking(on) {
  walking = on;
  $("walk").setAttribute("aria-pressed", String(on));
  $("walk").textContent = on ? "Stop walking" : "Walk";
  $("you").hidden = $("pad").hidden = !on;
  if (world) beginWalk();
  if (on) $("you").focus();
  dirty = true;
}

/** Take an action, if it is on offer. */
function go(action) {
  if (!you || !((world.mdp.available[you.s] >>> action) & 1)) return;
  const done = you.step(action), trial = trials.at(-1);
  if (!done) return;
  trial.states.push(done.s_next);
  trial.actions.push(done.a);
  trial.rewards.push(done.r);
  if (done.done) newTrial();
  dirty = true;
}

function walkKey(event) {
  if (!you || event.ctrlKey || event.metaKey || event.altKey) return;
  const direction = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
  const action = world.board ? direction : /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
  if (action < 0 || action >= world.mdp.A) return;
  event.preventDefault();
  go(action);
}

/** A tap on a neighbouring state goes there; a swipe goes its way. */
let touched = null;

function walkDown(event) {
  touched = [event.clientX, event.clientY];
  $("you").focus();
}

function walkUp(event) {
  if (!you || !touched) return;
  const dx = event.clientX - touched[0], dy = event.clientY - touched[1];
  touched = null;
  if (world.board && Math.hypot(dx, dy) > 24) {
    go(Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? RIGHT : LEFT) : dy > 0 ? DOWN : UP);
    return;
  }
  const s = stateUnder($("you"), event);
  for (let a = 0; a < world.mdp.A; a++) {
    const leads = world.mdp.next[(you.s * world.mdp.A + a) * world.mdp.K] === s;
    if (leads && s !== you.s && (world.mdp.available[you.s] >>> a) & 1) {
      go(a);
      return;
    }
  }
}

function stateUnder(canvas, event) {
  const box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  return new Frame(world, canvas.width, canvas.height).stateAt(world, (event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio);
}

function showPad() {
  const names = world.board ? ["↑", "→", "↓", "←"] : world.actions.slice(0, world.mdp.A);
  $("pad").replaceChildren(...names.map((name, a) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-label", `go ${world.actions[a]}`);
    button.addEventListener("click", () => go(a));
    return button;
  }));
}

function showWalk() {
  if (!you) return;
  const canvas = $("you"), trial = trials.at(-1), steps = trials.reduce((sum, one) => sum + one.actions.length, 0);
  fit(canvas);
  drawWorld(canvas, world, { values: you.visits, agent: you.s, trail: trial.states.slice(-200), paths: overlay.shown });
  $("walked").textContent = `${steps.toLocaleString("en")} steps in ${trials.length} trial${trials.length === 1 ? "" : "s"}; you are at ${world.labels[you.s]} and have seen ${Math.round((100 * you.seen) / world.mdp.S)} % of the states.`;
}

function saveWalk() {
  const walked = trials.filter((trial) => trial.actions.length);
  if (!walked.length) {
    say('There is no path yet: press "Walk", then the arrow keys.', true);
    return;
  }
  download("path.csv", new Blob([pathsToCsv($("subject").value.trim() || "me", walked)], { type: "text/csv" }));
  say("Saved as path.csv; spie fit path.csv reads it.");
}

function forgetWalk() {
  trials = [];
  if (world) beginWalk();
  dirty = true;
}

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Lay the paths of a CSV over the mazes. */
function layOver(text, name) {
  const paths = csvToPaths(text, world), colours = ["#a0409b", "#c08a10", "#1f7a4d", "#8a4b2a"];
  const shown = [...paths].flatMap(([, walks], i) => walks.map((states) => ({ states, colour: colours[i % colours.length], jitter: 3 * (i % 4) })));
  const steps = shown.reduce((sum, path) => sum + path.states.length - 1, 0);
  Object.assign(overlay, { shown, text, name });
  $("overlaid").textContent = `${name}: ${[...paths.keys()].slice(0, 6).join(", ")}${paths.size > 6 ? ", …" : ""}; ${shown.length} trials, ${steps.toLocaleString("en")} steps`;
  $("unlay").hidden = false;
  dirty = true;
}

function removeOverlay() {
  Object.assign(overlay, { shown: [], text: "" });
  $("overlaid").textContent = "";
  $("unlay").hidden = true;
  dirty = true;
}

async function readFile(file) {
  if (!file || !world) return;
  if (file.size > MOST_BYTES) {
    say("This file is larger than 20 MB; overlay a part of it.", true);
    return;
  }
  const text = await file.text();
  if (attempt(() => layOver(text, file.name))) say(`${file.name} lies over the mazes.`);
}

/** All arenas in one picture. */
function savePicture() {
  const canvases = state.agents.map((_, i) => $(`arena-${i}`)), picture = document.createElement("canvas");
  const side = canvases[0].width, gap = 20, head = 40;
  picture.width = canvases.length * (side + gap) - gap;
  picture.height = side + head;
  const context = picture.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = "#1f2328";
  context.font = `${Math.round(head * 0.5)}px system-ui, sans-serif`;
  canvases.forEach((canvas, i) => {
    context.fillText(`${state.agents[i].name}: ${caption(runs[i])}`, i * (side + gap), head * 0.65, side);
    context.drawImage(canvas, i * (side + gap), head);
  });
  picture.toBlob((blob) => download("spie.png", blob));
}
