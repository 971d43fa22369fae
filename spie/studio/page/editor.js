// Drawing a maze: with the mouse, by touch, or with the keyboard.

const TOOLS = {
  wall: "wall cell", free: "free cell", start: "start S", goal: "goal G", later: "later goal 1–9", edge: "thin wall", door: "one-way door",
};
const past = []; // boards before each change, for undo
let tool = "wall", cursor = 0, stroke = null;

function editable() {
  if (state.board) return true;
  say(`${state.world} is no board of cells, so it cannot be drawn in; choose another maze to start from.`, true);
  return false;
}

/** Change a copy of the board, and begin again with it. */
function change(edit) {
  if (!editable()) return;
  const before = state.board, board = before.copy();
  edit(board);
  if (board.letters.every((letter) => letter === "#")) {
    say("A maze needs one free cell at least.", true);
    return;
  }
  past.push(before);
  if (past.length > 200) past.shift();
  setBoard(board);
}

function setBoard(board, text = "") {
  state.board = board;
  state.world = "yours";
  cursor = Math.min(cursor, board.rows * board.columns - 1);
  renew(text);
  syncControls();
}

/** Use the tool on a cell, or on what stands between it and the next cell in a direction. */
function apply(board, i, direction = -1) {
  const between = tool === "edge" || tool === "door";
  if (between) {
    if (direction < 0 || board.beside(i, direction) < 0) return;
    const there = board.passes[4 * i + direction], back = board.passes[4 * board.beside(i, direction) + ((direction + 2) % 4)];
    if (tool === "edge") board.setEdge(i, direction, !(there || back), !(there || back));
    else if (there && back) board.setEdge(i, direction, true, false);
    else if (there) board.setEdge(i, direction, false, true);
    else board.setEdge(i, direction, true, true);
  } else if (tool === "later") {
    const unused = [...GOALS.slice(1)].find((goal) => !board.letters.includes(goal));
    if (GOALS.slice(1).includes(board.letters[i])) board.setLetter(i, ".");
    else if (unused) board.setLetter(i, unused);
  } else {
    const letter = { wall: "#", free: ".", start: "S", goal: "G" }[tool];
    board.setLetter(i, board.letters[i] === letter && !stroke ? "." : letter);
  }
}

/** The cell under a pointer, and the side of it that is nearest: {i, direction}. */
function pointed(event) {
  const canvas = $("board"), box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  const [x, y] = new Frame(pictureWorld(), canvas.width, canvas.height).position((event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio);
  const row = Math.round(y), column = Math.round(x), dx = x - column, dy = y - row;
  if (!state.board || !state.board.inside(row, column)) return null;
  const direction = Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? RIGHT : LEFT) : dy > 0 ? DOWN : UP;
  return { i: row * state.board.columns + column, direction };
}

function beginStroke(event) {
  const hit = pointed(event);
  if (!hit) {
    if (!state.board) editable();
    return;
  }
  event.preventDefault();
  $("board").focus();
  cursor = hit.i;
  change((board) => apply(board, hit.i, hit.direction));
  // A drag goes on with what the first cell became
  stroke = ["wall", "free", "start"].includes(tool) && state.board ? { letter: state.board.letters[hit.i] } : null;
  if (stroke) $("board").setPointerCapture(event.pointerId);
}

function goOn(event) {
  const hit = stroke && pointed(event);
  if (!hit || state.board.letters[hit.i] === stroke.letter) return;
  cursor = hit.i;
  change((board) => board.setLetter(hit.i, stroke.letter));
}

function boardKey(event) {
  const direction = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(event.key);
  if (direction < 0 && event.key !== " " && event.key !== "Enter") return;
  event.preventDefault();
  if (!editable()) return;
  if (direction < 0) change((board) => apply(board, cursor));
  else if (event.shiftKey) change((board) => apply(board, cursor, direction));
  else if (state.board.beside(cursor, direction) >= 0) cursor = state.board.beside(cursor, direction); // else at the border
  const letter = state.board.letters[cursor], names = { "#": "wall", ".": "free", S: "start" };
  $("where").textContent = `${place(state.board, cursor)}: ${names[letter] || `goal ${letter}`}`;
  dirty = true;
}

let picture = { board: null, world: null }; // a board is never changed, but replaced

/** The board as a world to be drawn, whatever its task. */
function pictureWorld() {
  if (!state.board) return world;
  if (picture.board !== state.board) picture = { board: state.board, world: worldOfBoard(state.board, "explore", true) };
  return picture.world;
}

let drawnAs = ""; // what the picture of the board depends on: it changes far less often than the agents move
let drawnOf = null;

function drawBoard() {
  const canvas = $("board");
  fit(canvas);
  const now = `${canvas.width} ${cursor} ${document.activeElement === canvas} ${canvas.dataset.ink}`;
  if (now === drawnAs && drawnOf === pictureWorld()) return;
  drawnAs = now;
  drawnOf = pictureWorld();
  drawWorld(canvas, pictureWorld());
  if (!state.board || document.activeElement !== canvas) return;
  const frame = new Frame(pictureWorld(), canvas.width, canvas.height), context = canvas.getContext("2d");
  const [x, y] = frame.at([cursor % state.board.columns, Math.floor(cursor / state.board.columns)]);
  context.strokeStyle = PAINT.you;
  context.lineWidth = Math.max(2, 0.1 * frame.unit);
  context.strokeRect(x - frame.unit / 2, y - frame.unit / 2, frame.unit, frame.unit);
}

function undo() {
  const before = past.pop();
  if (before) setBoard(before, "Undone.");
  else say("There is nothing to undo.");
}

function resize() {
  const rows = Number($("rows").value), columns = Number($("columns").value);
  const whole = [rows, columns].every((n) => Number.isInteger(n) && n >= 1 && n <= MOST_CELLS);
  if (!whole) say(`Rows and columns must be whole numbers from 1 to ${MOST_CELLS}.`, true);
  else if (rows * columns < 2) say("A maze needs two cells at least.", true);
  else if (editable()) {
    const board = state.board.resized(rows, columns);
    if (board.letters.every((letter) => letter === "#")) board.letters[0] = ".";
    past.push(state.board);
    setBoard(board);
  }
}

function clearBoard() {
  if (!editable()) return;
  past.push(state.board);
  setBoard(Board.open(state.board.rows, state.board.columns), "Cleared; undo brings it back.");
}

function useText() {
  attempt(() => {
    const board = Board.fromText($("text").value);
    if (state.board) past.push(state.board);
    setBoard(board, "The text is the maze now.");
  });
}

function asPython() {
  const run = state.agents[whose], unused = run.settings.policy === "softmax" ? "epsilon" : "inverse_temperature";
  const settings = Object.entries(run.settings).filter(([key]) => key !== unused); // Sarsa refuses what its policy does not use
  const agent = `spie.agent("${run.name}"${settings.map(([key, value]) => `, ${key}=${typeof value === "string" ? `"${value}"` : value ?? "None"}`).join("")})`;
  const maze = state.board
    ? `spie.grid('''\n${state.board.toText()}\n''', task="${state.task}", bumps=${state.bumps ? "True" : "False"})`
    : `spie.task("${state.world}")`;
  return `import spie\n\nmaze = ${maze}\nagent = ${agent}\ntrace = agent.run(maze, steps=2000, seeds=[${state.seed}], keep=spie.Keep(paths=(${state.seed},)))\nprint(trace.coverage([100, 500, 2000]))\n`;
}
