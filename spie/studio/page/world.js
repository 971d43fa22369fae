// Worlds: a board of cells that is drawn by hand, or an MDP that came with the page. Both become arrays for the engine.
//
// A board is read from and written as text in the two notations of spie.grid, and gives the same MDP as spie.grid does.

const UP = 0, RIGHT = 1, DOWN = 2, LEFT = 3;
const MOVES = [[-1, 0], [0, 1], [1, 0], [0, -1]]; // up, right, down, left: (rows, columns)
const GOALS = "G123456789";
const CELLS = "#. S" + GOALS;
const MOST_CELLS = 40; // rows or columns of a board; M has the square of the number of states

/** A mistake of the user's, to be shown as it is. */
class Mistake extends Error {}

/** What stands in each cell, and whether up, right, down and left lead to the next cell. */
class Board {
  constructor(rows, columns) {
    this.rows = rows;
    this.columns = columns;
    this.letters = new Array(rows * columns).fill(".");
    this.passes = new Uint8Array(rows * columns * 4).fill(1); // what stands between cells; borders are left to `leads`
  }

  static open(rows, columns) {
    const board = new Board(rows, columns);
    board.letters[0] = "S";
    board.letters[rows * columns - 1] = "G";
    return board;
  }

  copy() {
    const other = new Board(this.rows, this.columns);
    other.letters = [...this.letters];
    other.passes = this.passes.slice();
    return other;
  }

  inside(row, column) {
    return row >= 0 && row < this.rows && column >= 0 && column < this.columns;
  }

  /** The cell next to cell i in a direction, free or not; -1 over the border. */
  beside(i, direction) {
    const row = Math.floor(i / this.columns) + MOVES[direction][0], column = (i % this.columns) + MOVES[direction][1];
    return this.inside(row, column) ? row * this.columns + column : -1;
  }

  /** Whether a move from cell i gets to the next cell. */
  leads(i, direction) {
    const j = this.beside(i, direction);
    return j >= 0 && this.letters[i] !== "#" && this.letters[j] !== "#" && this.passes[4 * i + direction] === 1;
  }

  /** Say what stands between cell i and the next one: open both ways, closed, or a door there or back only. */
  setEdge(i, direction, there, back) {
    const j = this.beside(i, direction);
    if (j < 0) return;
    this.passes[4 * i + direction] = there ? 1 : 0;
    this.passes[4 * j + ((direction + 2) % 4)] = back ? 1 : 0;
  }

  /** Put a letter into a cell; a goal stands in one cell only. */
  setLetter(i, letter) {
    if (GOALS.includes(letter)) this.letters = this.letters.map((other) => (other === letter ? "." : other));
    this.letters[i] = letter;
  }

  resized(rows, columns) {
    const other = new Board(rows, columns);
    for (let row = 0; row < Math.min(rows, this.rows); row++) {
      for (let column = 0; column < Math.min(columns, this.columns); column++) {
        const i = row * columns + column, old = row * this.columns + column;
        other.letters[i] = this.letters[old];
        for (let d = 0; d < 4; d++) other.passes[4 * i + d] = this.passes[4 * old + d];
      }
    }
    return other;
  }

  /** Whether something stands between two free cells, which the notation of cells alone cannot say. */
  get hasEdges() {
    return this.letters.some((letter, i) => letter !== "#" && MOVES.some((_, d) => {
      const j = this.beside(i, d);
      return j >= 0 && this.letters[j] !== "#" && !this.passes[4 * i + d];
    }));
  }

  /** The board as text: cells alone, or cells and edges where something stands between cells. */
  toText() {
    const rows = [];
    if (!this.hasEdges) {
      for (let r = 0; r < this.rows; r++) rows.push(this.letters.slice(r * this.columns, (r + 1) * this.columns).join(""));
      return rows.join("\n");
    }
    for (let r = 0; r <= this.rows; r++) {
      let edges = "+", cells = "";
      for (let c = 0; c < this.columns; c++) {
        const above = r > 0 && this.leads((r - 1) * this.columns + c, DOWN);
        const below = r < this.rows && this.leads(r * this.columns + c, UP);
        edges += (above && below ? "   " : above ? "-v-" : below ? "-^-" : "---") + "+";
      }
      rows.push(edges);
      if (r === this.rows) break;
      for (let c = 0; c <= this.columns; c++) {
        const right = c > 0 && this.leads(r * this.columns + c - 1, RIGHT);
        const left = c < this.columns && this.leads(r * this.columns + c, LEFT);
        cells += right && left ? " " : right ? ">" : left ? "<" : "|";
        if (c < this.columns) cells += ` ${this.letters[r * this.columns + c].replace(".", " ")} `;
      }
      rows.push(cells);
    }
    return rows.join("\n");
  }

  /** Read a board; what is wrong is said with its place. */
  static fromText(text) {
    const lines = text.replaceAll("\r\n", "\n").replace(/^\n/, "").replace(/\s+$/, "").split("\n");
    const board = lines[0].trimStart().startsWith("+") ? readEdges(lines) : readCells(text.replaceAll("\r\n", "\n"));
    if (board.letters.every((letter) => letter === "#")) throw new Mistake("The map has no free cell.");
    for (const goal of GOALS) {
      if (board.letters.filter((letter) => letter === goal).length > 1) throw new Mistake(`The map has two "${goal}"; one at most.`);
    }
    return board;
  }
}

function newBoard(rows, columns) {
  if (rows > MOST_CELLS || columns > MOST_CELLS) {
    throw new Mistake(`The map has ${rows} x ${columns} cells; the studio takes ${MOST_CELLS} x ${MOST_CELLS} at most.`);
  }
  return new Board(rows, columns);
}

function readLetter(letter, line, column) {
  if (!CELLS.includes(letter)) {
    throw new Mistake(`Unknown character "${letter}" in line ${line}, column ${column}. Known: # wall, . free, S start, G goal, 1-9 later goals.`);
  }
  return letter === " " ? "." : letter;
}

function readCells(text) {
  const lines = text.replace(/^\n/, "").replace(/\n+$/, "").split("\n");
  const columns = lines[0].length;
  if (columns === 0) throw new Mistake("The map is empty.");
  const board = newBoard(lines.length, columns);
  lines.forEach((line, r) => {
    if (line.length !== columns) throw new Mistake(`Line ${r + 1} has ${line.length} characters, line 1 has ${columns}.`);
    [...line].forEach((letter, c) => { board.letters[r * columns + c] = readLetter(letter, r + 1, c + 1); });
  });
  return board;
}

function readEdges(lines) {
  const indent = Math.min(...lines.map((line) => line.search(/\S|$/)));
  lines = lines.map((line) => line.slice(indent).trimEnd());
  const length = lines[0].length, width = lines[0].indexOf("+", 1);
  if (width < 2 || (length - 1) % width) throw new Mistake('Line 1 must be corners "+" at equal distances, as in +---+---+.');
  if (lines.length % 2 === 0 || lines.length < 3) throw new Mistake(`${lines.length} lines; a board has a line of edges above and below each line of cells.`);
  lines.forEach((line, i) => {
    if (line.length !== length) throw new Mistake(`Line ${i + 1} has ${line.length} characters, line 1 has ${length}.`);
  });
  const rows = (lines.length - 1) / 2, columns = (length - 1) / width, board = newBoard(rows, columns);
  const edge = (i, j, known) => {
    const found = lines[i].slice(j, j + (known.includes("-") ? width - 1 : 1));
    const kind = found.replace(/[ -]/g, "") || (found.trim() ? "-" : " ");
    const clean = kind.length === 1 && known.includes(kind) && (kind !== "-" || !found.includes(" "));
    if (!clean) throw new Mistake(`"${found}" in line ${i + 1}, column ${j + 1} is no whole edge.`);
    return kind;
  };
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const inside = lines[2 * r + 1].slice(c * width + 1, (c + 1) * width).trim();
      if (inside.length > 1) throw new Mistake(`"${inside}" in line ${2 * r + 2}, column ${c * width + 2}; a cell holds one character at most.`);
      board.letters[r * columns + c] = readLetter(inside || ".", 2 * r + 2, c * width + 2);
    }
  }
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const i = r * columns + c;
      const below = edge(2 * r + 2, c * width + 1, "- ^v"), beside = edge(2 * r + 1, (c + 1) * width, "| <>");
      board.setEdge(i, DOWN, " v".includes(below), " ^".includes(below));
      board.setEdge(i, RIGHT, " >".includes(beside), " <".includes(beside));
    }
  }
  return board;
}

/** The world of a board: its MDP as spie.grid has it, and where the states lie. */
function worldOfBoard(board, task, bumps, episodesPerGoal = 30) {
  const cells = [], state = new Int32Array(board.rows * board.columns).fill(-1);
  board.letters.forEach((letter, i) => { if (letter !== "#") { state[i] = cells.length; cells.push(i); } });
  const S = cells.length, find = (letter) => cells.findIndex((i) => board.letters[i] === letter);
  const goals = goalStates(find, task);
  const next = new Int32Array(4 * S), available = new Int32Array(S).fill(15);
  cells.forEach((i, s) => {
    for (let d = 0; d < 4; d++) next[4 * s + d] = board.leads(i, d) ? state[board.beside(i, d)] : s;
    if (!bumps) available[s] = [0, 1, 2, 3].reduce((set, d) => set | (board.leads(i, d) ? 1 << d : 0), 0);
    if (available[s] === 0) throw new Mistake(`Nothing to do at ${place(board, i)}, walled in; switch bumps on.`);
  });
  let starts = cells.map((i) => board.letters[i] === "S");
  if (!starts.includes(true)) starts = cells.map((_, s) => !goals.includes(s));
  if (!starts.includes(true)) throw new Mistake("There is no cell to start from beside the goals.");
  const n = starts.filter(Boolean).length, G = Math.max(1, goals.length);
  const reward = new Float64Array(G * 4 * S), terminal = new Uint8Array(G * S);
  goals.forEach((goal, g) => {
    terminal[g * S + goal] = 1;
    for (let i = 0; i < 4 * S; i++) reward[g * 4 * S + i] = next[i] === goal ? 0 : -1;
    const lost = starts.findIndex((is, s) => is && !leadsTo(next, s, goal));
    if (lost >= 0) throw new Mistake(`Goal ${GOALS[g]} cannot be reached from ${place(board, cells[lost])}.`);
  });
  return {
    mdp: finish({
      S, A: 4, K: 1, G, next, prob: Float64Array.from(flat(available)), reward, terminal, available,
      start: starts.map((is) => (is ? 1 / n : 0)), episodesPerPhase: task === "moving-goal" ? episodesPerGoal : 0,
    }),
    board, cells, state, gap: 1, actions: ["up", "right", "down", "left"], cell: "square",
    positions: cells.map((i) => [i % board.columns, Math.floor(i / board.columns)]),
    labels: cells.map((i) => `${Math.floor(i / board.columns)},${i % board.columns}`),
    letters: cells.map((i) => (board.letters[i] === "." ? "" : board.letters[i])),
    ...edgesOf(board),
  };
}

function flat(available) {
  return [...available].flatMap((set) => [0, 1, 2, 3].map((d) => (set >>> d) & 1));
}

function place(board, i) {
  return `row ${Math.floor(i / board.columns)}, column ${i % board.columns}`;
}

function goalStates(find, task) {
  if (task === "explore") return [];
  const letters = task === "goal" ? ["G"] : [...GOALS].filter((letter) => find(letter) >= 0);
  if (find("G") < 0) throw new Mistake('This task needs a goal: put one into the maze, or choose the task "explore".');
  if (task === "moving-goal" && letters.length < 2) throw new Mistake("Goals that move need a second goal: put 1 into the maze.");
  return letters.map(find);
}

function leadsTo(next, from, to) {
  const seen = new Set([from]), queue = [from];
  while (queue.length) {
    const s = queue.pop();
    if (s === to) return true;
    for (let a = 0; a < 4; a++) if (!seen.has(next[4 * s + a])) { seen.add(next[4 * s + a]); queue.push(next[4 * s + a]); }
  }
  return false;
}

/** Thin walls and one-way doors between free cells. */
function edgesOf(board) {
  const walls = [], arrows = [];
  board.letters.forEach((letter, i) => {
    if (letter === "#") return;
    for (const d of [RIGHT, DOWN]) {
      const j = board.beside(i, d);
      if (j < 0 || board.letters[j] === "#") continue;
      const x = i % board.columns, y = Math.floor(i / board.columns);
      const there = board.leads(i, d), back = board.leads(j, d + 2 & 3);
      const side = d === RIGHT ? [[x + 0.5, y - 0.5], [x + 0.5, y + 0.5]] : [[x - 0.5, y + 0.5], [x + 0.5, y + 0.5]];
      if (!there && !back) walls.push(side);
      else if (there !== back) arrows.push(there ? [[x, y], [j % board.columns, Math.floor(j / board.columns)]]
        : [[j % board.columns, Math.floor(j / board.columns)], [x, y]]);
    }
  });
  return { walls, arrows, links: [] };
}

/** How far apart the two nearest positions are. */
function nearest(positions) {
  let least = Infinity;
  positions.forEach((p, i) => positions.slice(0, i).forEach((q) => { least = Math.min(least, Math.hypot(p[0] - q[0], p[1] - q[1])); }));
  return least > 0 && least < Infinity ? least : 1;
}

/** The world of an MDP that came with the page. */
function worldOfTables(told) {
  const mdp = finish({
    S: told.S, A: told.A, K: told.K, G: told.G, next: Int32Array.from(told.next), prob: Float64Array.from(told.prob),
    reward: Float64Array.from(told.reward), start: told.start, terminal: Uint8Array.from(told.terminal),
    available: Int32Array.from(told.available), episodesPerPhase: told.episodesPerPhase,
  });
  const at = (s) => told.positions[s];
  return {
    mdp, board: null, cells: null, state: null, gap: told.cell === "node" ? nearest(told.positions) : 1, actions: told.actions, cell: told.cell, positions: told.positions,
    labels: told.labels, letters: told.letters, walls: told.walls, arrows: told.arrows.map((pair) => pair.map(at)),
    links: told.links.map((pair) => pair.map(at)),
  };
}

/** What the engine reads beside the arrays: where runs begin, and the shares of random words. */
function finish(mdp) {
  mdp.starts = [];
  mdp.start.forEach((p, s) => { if (p > 0) mdp.starts.push(s); });
  mdp.startEnds = thresholds(mdp.starts.map((s) => mdp.start[s]));
  mdp.ends = [];
  if (mdp.K > 1) {
    for (let i = 0; i < mdp.S * mdp.A; i++) mdp.ends.push(thresholds([...mdp.prob.slice(i * mdp.K, (i + 1) * mdp.K)]));
  }
  return mdp;
}
