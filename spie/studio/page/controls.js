// Buttons, lists and fields, and what each of them does. This part comes last and starts the page.

function option(value, text) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = text;
  return made;
}

function labelled(text, control) {
  const label = document.createElement("label");
  label.append(text, control);
  return label;
}

function radio(group, value, text, checked, chosen) {
  const input = document.createElement("input");
  Object.assign(input, { type: "radio", name: group, value, checked });
  input.addEventListener("change", () => chosen(value));
  const label = document.createElement("label");
  label.append(input, text);
  return label;
}

/** Everything that can be chosen, shown as it is chosen now. */
function syncControls() {
  $("task").value = state.task;
  $("task").disabled = $("bumps").disabled = !state.board;
  $("bumps").checked = state.bumps;
  $("seed").value = state.seed;
  $("overlay").value = state.overlay;
  $("arrows").checked = state.arrows;
  $("speed").value = state.speed;
  $("speed-says").textContent = `${short(10 ** state.speed)} steps/s`;
  $("preset").value = told.worlds.some((one) => one.name === state.world) ? state.world : "yours";
  for (const id of ["rows", "columns", "clear", "use-text", "copy-map"]) $(id).disabled = !state.board && id !== "use-text";
  if (state.board) {
    $("rows").value = state.board.rows;
    $("columns").value = state.board.columns;
    $("text").value = state.board.toText();
  }
  state.agents.forEach((agent, i) => { $(`agent-${i}`).value = agent.name; });
  showFields();
}

function showFields() {
  const agent = state.agents[whose], settings = { ...SARSA, ...told.agents[agent.name], ...agent.settings };
  $("whose").replaceChildren(...state.agents.map((one, i) => radio("whose", String(i), `${SLOTS[i].name}: ${one.name}`, i === whose, () => {
    whose = i;
    showFields();
    $("whose").querySelectorAll("input")[i].focus();
  })));
  $("formula").textContent = `Bonus "${settings.reward}": ${REWARDS[settings.reward].says}`;
  const policy = document.createElement("select");
  policy.append(option("epsilon-greedy", "epsilon-greedy"), option("softmax", "softmax"));
  policy.value = settings.policy;
  policy.id = "field-policy";
  policy.addEventListener("change", () => setSetting("policy", policy.value));
  const reward = document.createElement("select");
  reward.append(...Object.keys(REWARDS).map((name) => option(name, name)));
  reward.value = settings.reward;
  reward.id = "field-reward";
  reward.addEventListener("change", () => setSetting("reward", reward.value));
  const numbers = FIELDS.filter(([name]) => name !== (settings.policy === "softmax" ? "epsilon" : "inverse_temperature"));
  $("fields").replaceChildren(labelled("reward", reward), labelled("policy", policy), ...numbers.map(([name, low, high, why]) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "number", min: low, max: high, step: "any", id: `field-${name}`, value: settings[name] ?? "", title: why });
    input.addEventListener("change", () => setSetting(name, input.value));
    const label = labelled(name, input);
    label.title = why;
    return label;
  }));
}

function setSetting(name, text) {
  const agent = state.agents[whose];
  const fine = attempt(() => {
    const settings = { ...agent.settings };
    if (text === "" && name.endsWith("_pr")) delete settings[name];
    else settings[name] = readSetting(name, String(text));
    agent.settings = settings;
    renew();
  });
  const here = document.activeElement && document.activeElement.id;
  showFields();
  if (here && $(here)) $(here).focus();
  return fine;
}

function chooseWorld(name) {
  if (name === "yours") return;
  if (state.board && state.world === "yours") past.push(state.board);
  attempt(() => {
    Object.assign(state, chosenWorld(name));
    renew();
    syncControls();
  });
}

function makeArena(i) {
  const figure = document.createElement("figure"), select = document.createElement("select"), canvas = document.createElement("canvas"), text = document.createElement("figcaption");
  select.id = `agent-${i}`;
  select.append(...Object.keys(told.agents).map((name) => option(name, name)));
  select.addEventListener("change", () => {
    state.agents[i] = { name: select.value, settings: {} };
    renew();
    syncControls();
  });
  Object.assign(canvas, { id: `arena-${i}`, width: 400, height: 400, tabIndex: 0 });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Agent ${SLOTS[i].name} in the maze; arrow keys look at a state's place field`);
  canvas.addEventListener("pointermove", (event) => look(stateUnder(canvas, event)));
  canvas.addEventListener("pointerleave", () => look(-1));
  canvas.addEventListener("blur", () => look(-1));
  canvas.addEventListener("keydown", (event) => lookKey(event, runs[i]));
  text.id = `caption-${i}`;
  figure.append(labelled(`${SLOTS[i].name} `, select), canvas, text);
  return figure;
}

function look(s) {
  if (s === looked || !world) return;
  looked = s;
  if (s >= 0) $("looked").textContent = `Place field of ${world.labels[s]}: the darker a state, the sooner and the more often it leads there, M[:, ${s}].`;
  dirty = true;
}

function lookKey(event, run) {
  const direction = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
  if (event.key === "Escape") look(-1);
  if (direction < 0) return;
  event.preventDefault();
  const s = looked < 0 ? run.lane.s : looked;
  look(world.board ? world.mdp.next[4 * s + direction] : (s + (direction === RIGHT || direction === DOWN ? 1 : world.mdp.S - 1)) % world.mdp.S);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} is on the clipboard.`);
  } catch {
    $("text").value = text; // a browser that does not let us: there it can be marked and copied
    $("text").closest("details").open = true;
    say(`The browser does not let this page copy; ${what.toLowerCase()} stands under "As text".`);
  }
}

function on(id, event, action) {
  $(id).addEventListener(event, action);
}

function wire() {
  on("preset", "change", () => chooseWorld($("preset").value));
  on("task", "change", () => { state.task = $("task").value; renew(); });
  on("bumps", "change", () => { state.bumps = $("bumps").checked; renew(); });
  on("board", "pointerdown", beginStroke);
  on("board", "pointermove", goOn);
  for (const event of ["pointerup", "pointercancel"]) on("board", event, () => { stroke = null; });
  for (const event of ["focus", "blur"]) on("board", event, () => { dirty = true; });
  on("board", "keydown", boardKey);
  on("rows", "change", resize);
  on("columns", "change", resize);
  on("undo", "click", undo);
  on("clear", "click", clearBoard);
  on("use-text", "click", useText);
  on("copy-map", "click", () => copy(state.board.toText(), "The map"));
  on("copy-python", "click", () => copy(asPython(), "The Python code"));
  on("copy-link", "click", () => copy(location.href, "The link"));
  on("picture", "click", savePicture);
  on("play", "click", () => setPlaying(!playing));
  on("step", "click", () => { setPlaying(false); if (!$("play").disabled) advance(1); });
  on("more", "click", () => { if (!$("play").disabled) advance(1000); });
  on("restart", "click", () => renew());
  on("speed", "input", () => { state.speed = Number($("speed").value); syncControls(); });
  on("seed", "change", () => { attempt(() => { state.seed = readSeed($("seed").value); renew(); }); syncControls(); });
  on("overlay", "change", () => { state.overlay = $("overlay").value; remember(); dirty = true; });
  on("arrows", "change", () => { state.arrows = $("arrows").checked; dirty = true; });
  on("walk", "click", () => setWalking(!walking));
  on("you", "keydown", walkKey);
  on("you", "pointerdown", walkDown);
  on("you", "pointerup", walkUp);
  on("save", "click", saveWalk);
  on("forget", "click", forgetWalk);
  on("file", "change", () => readFile($("file").files[0]));
  on("unlay", "click", removeOverlay);
  window.addEventListener("resize", () => { dirty = true; });
  window.addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== encode()) openAddress();
  });
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    readFile(event.dataTransfer.files[0]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { dirty = true; });
}

/** What the address says, if it can be read; else all stays as it is, and the address is put right. */
function openAddress() {
  const fine = attempt(() => decode(location.hash.slice(1)));
  const said = $("message").textContent;
  renew();
  if (!fine) say(`The address could not be read: ${said} What you had is still here.`, true);
  syncControls();
}

function start() {
  $("version").textContent = told.version;
  $("preset").append(...told.worlds.map((one) => option(one.name, one.name)), option("yours", "as drawn"));
  $("overlay").append(...Object.entries(OVERLAYS).map(([key, [text]]) => option(key, text)));
  $("tools").append(...Object.entries(TOOLS).map(([key, text]) => radio("tool", key, text, key === tool, (chosen) => { tool = chosen; })));
  $("arenas").append(...SLOTS.map((_, i) => makeArena(i)));
  Object.assign(state, chosenWorld(told.first));
  wire();
  openAddress();
  requestAnimationFrame(frame);
}

start();

// For tests and the curious: what runs, and how fast.
window.studio = {
  state, frameTimes, encode, advance,
  runs: () => runs.map(({ name, path, lane }) => ({ name, ...path, Q: [...lane.Q] })),
  sums: () => Object.fromEntries(Object.entries(OVERLAYS).filter(([key]) => /_/.test(key)).map(([key, [, of]]) => [key, [...of(runs[0].lane)]])),
  world: () => world,
  trials: () => trials,
  stepsPerSecond(n = 20_000) {
    const begun = performance.now();
    for (let i = 0; i < n; i++) for (const run of runs) run.step();
    return (n * runs.length) / ((performance.now() - begun) / 1000);
  },
};
