// Pictures: a world with values on its states, and curves of coverage.

const HEAT = ["#fde9a9", "#9fd3a8", "#3fa7b5", "#2f6fae", "#2b3f8c"].map(parseColour); // low to high, ever darker
const ON_MAP = "#22222c"; // writing on a map, whose floor is light in any page
const PAINT = { wall: "#3a3d46", floor: "#efeee8", start: "#a9cdf5", goal: "#f5c451", trail: "#a0409b", you: "#cc3d12" };
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [1, 4]];

function parseColour(text) {
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

/** The colour of a share between 0 and 1. */
function heat(share) {
  const x = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1), i = Math.min(Math.floor(x), HEAT.length - 2);
  const [r, g, b] = [0, 1, 2].map((c) => Math.round(HEAT[i][c] + (x - i) * (HEAT[i + 1][c] - HEAT[i][c])));
  return `rgb(${r},${g},${b})`;
}
const SHADES = Array.from({ length: 256 }, (_, i) => heat(i / 255));

/** The smallest and the largest of the finite values. */
function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (Number.isFinite(v)) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  }
  return [low, high];
}

/** Where states lie on a canvas: pixels from positions, and back. */
class Frame {
  constructor(world, width, height) {
    const xs = world.board ? [0, world.board.columns - 1] : world.positions.map((p) => p[0]);
    const ys = world.board ? [0, world.board.rows - 1] : world.positions.map((p) => p[1]);
    const [left, right] = extent(xs), [top, bottom] = extent(ys);
    const room = world.cell === "node" ? 0.75 * world.gap : 0.6;
    this.unit = Math.min(width / (right - left + 2 * room), height / (bottom - top + 2 * room));
    this.x0 = width / 2 - (this.unit * (left + right)) / 2;
    this.y0 = height / 2 - (this.unit * (top + bottom)) / 2;
  }

  at([x, y]) {
    return [this.x0 + this.unit * x, this.y0 + this.unit * y];
  }

  position(px, py) {
    return [(px - this.x0) / this.unit, (py - this.y0) / this.unit];
  }

  /** The state whose cell holds a point, or -1. */
  stateAt(world, px, py) {
    const [x, y] = this.position(px, py);
    let nearest = -1, least = world.cell === "square" ? 0.5 : 0.6 * world.gap;
    world.positions.forEach((p, s) => {
      const away = world.cell === "square" ? Math.max(Math.abs(p[0] - x), Math.abs(p[1] - y)) : Math.hypot(p[0] - x, p[1] - y);
      if (away <= least) [nearest, least] = [s, away];
    });
    return nearest;
  }
}

/** The outline of a state's cell. */
function outline(context, world, frame, s) {
  const [x, y] = frame.at(world.positions[s]), u = frame.unit;
  context.beginPath();
  if (world.cell === "square") context.rect(x - u / 2, y - u / 2, u + 0.5, u + 0.5);
  else if (world.cell === "hexagon") {
    for (let i = 0; i < 6; i++) {
      const angle = Math.PI / 6 + (i * Math.PI) / 3, r = u / Math.sqrt(3);
      context.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
    }
    context.closePath();
  } else context.arc(x, y, nodeRadius(world, u), 0, 2 * Math.PI);
}

function nodeRadius(world, unit) {
  return Math.max(3, Math.min(0.36 * unit * world.gap, 26));
}

/** A world; `values` shade its states, `agent` is where someone stands, `trail` where they came from. */
function drawWorld(canvas, world, { values = null, scale = null, agent = -1, trail = [], arrows = null, marked = -1, paths = [] } = {}) {
  const context = canvas.getContext("2d"), frame = new Frame(world, canvas.width, canvas.height), u = frame.unit;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  if (world.board) {
    const [left, top] = frame.at([-0.6, -0.6]);
    context.fillStyle = PAINT.wall;
    context.fillRect(left, top, u * (world.board.columns + 0.2), u * (world.board.rows + 0.2));
  }
  context.strokeStyle = canvas.dataset.ink || "#5b636d";
  context.lineWidth = Math.max(1, u * 0.04);
  for (const [a, b] of world.links) line(context, frame.at(a), frame.at(b));
  const [low, high] = scale || (values ? extent(values) : [0, 0]);
  for (let s = 0; s < world.mdp.S; s++) {
    const shaded = values && Number.isFinite(values[s]) && high > low;
    context.fillStyle = shaded ? SHADES[Math.round((255 * (values[s] - low)) / (high - low))]
      : world.letters[s] === "S" ? PAINT.start : world.letters[s] ? PAINT.goal : PAINT.floor;
    outline(context, world, frame, s);
    context.fill();
    if (world.cell !== "square") context.stroke();
  }
  drawEdges(context, world, frame);
  drawLetters(context, world, frame, values, low, high);
  if (arrows) drawGreedy(context, world, frame, arrows, values, low, high);
  for (const path of paths) drawTrail(context, world, frame, path.states, path.colour, path.jitter);
  if (trail.length) drawTrail(context, world, frame, trail, PAINT.trail, 0);
  if (marked >= 0) {
    context.strokeStyle = PAINT.you;
    context.lineWidth = Math.max(2, u * 0.09);
    outline(context, world, frame, marked);
    context.stroke();
  }
  if (agent >= 0) drawAgent(context, world, frame, agent);
}

function line(context, a, b) {
  context.beginPath();
  context.moveTo(...a);
  context.lineTo(...b);
  context.stroke();
}

/** Thin walls, and doors that are passed one way only. */
function drawEdges(context, world, frame) {
  const u = frame.unit;
  context.strokeStyle = PAINT.wall;
  context.lineCap = "round";
  context.lineWidth = Math.max(2, u * 0.12);
  for (const [a, b] of world.walls) line(context, frame.at(a), frame.at(b));
  for (const [from, to] of world.arrows) {
    const [x0, y0] = frame.at(from), [x1, y1] = frame.at(to), angle = Math.atan2(y1 - y0, x1 - x0);
    const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2], r = Math.max(4, 0.2 * u * world.gap);
    if (world.cell === "node") line(context, [x0, y0], [x1, y1]);
    else {
      context.save();
      context.lineWidth = Math.max(1, u * 0.05);
      context.setLineDash([u * 0.1, u * 0.12]);
      line(context, [x - (Math.sin(angle) * u) / 2, y + (Math.cos(angle) * u) / 2], [x + (Math.sin(angle) * u) / 2, y - (Math.cos(angle) * u) / 2]);
      context.restore();
    }
    context.fillStyle = ON_MAP;
    context.beginPath();
    for (const turn of [0, 2.4, -2.4]) context.lineTo(x + r * Math.cos(angle + turn), y + r * Math.sin(angle + turn));
    context.fill();
  }
}

function drawLetters(context, world, frame, values, low, high) {
  context.font = `600 ${Math.max(8, Math.min(0.5 * frame.unit * world.gap, 22))}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  world.letters.forEach((letter, s) => {
    const word = letter || (world.cell === "node" && world.mdp.S <= 32 ? world.labels[s] : "");
    if (!word) return;
    context.fillStyle = isDark(values, low, high, s) ? "#fff" : ON_MAP;
    context.fillText(word, ...frame.at(world.positions[s]));
  });
}

function isDark(values, low, high, s) {
  return values !== null && high > low && (values[s] - low) / (high - low) > 0.6;
}

/** The greedy actions of each state: an arrowhead towards where each leads; none where all are alike. */
function drawGreedy(context, world, frame, greedy, values, low, high) {
  const { mdp } = world, u = frame.unit * world.gap, r = Math.max(2, 0.13 * u);
  for (let s = 0; s < mdp.S; s++) {
    if (greedy[s] === mdp.available[s]) continue;
    const [x, y] = frame.at(world.positions[s]);
    context.fillStyle = isDark(values, low, high, s) ? "#fff" : ON_MAP;
    for (let a = 0; a < mdp.A; a++) {
      const to = mdp.next[(s * mdp.A + a) * mdp.K];
      if (!((greedy[s] >>> a) & 1) || to === s) continue;
      const [x1, y1] = frame.at(world.positions[to]), angle = Math.atan2(y1 - y, x1 - x);
      const [cx, cy] = [x + 0.33 * u * Math.cos(angle), y + 0.33 * u * Math.sin(angle)];
      context.beginPath();
      for (const turn of [0, 2.3, -2.3]) context.lineTo(cx + r * Math.cos(angle + turn), cy + r * Math.sin(angle + turn));
      context.fill();
    }
  }
}

function drawTrail(context, world, frame, states, colour, jitter) {
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1.5, frame.unit * 0.08);
  context.lineJoin = "round";
  context.beginPath();
  let before = -1;
  for (const s of states) {
    const [x, y] = frame.at(world.positions[s]);
    if (before < 0) context.moveTo(x + jitter, y + jitter);
    else context.lineTo(x + jitter, y + jitter);
    before = s;
  }
  context.stroke();
}

function drawAgent(context, world, frame, s) {
  const [x, y] = frame.at(world.positions[s]), r = world.cell === "node" ? 0.6 * nodeRadius(world, frame.unit) : 0.28 * frame.unit;
  context.beginPath();
  context.arc(x, y, Math.max(3, r), 0, 2 * Math.PI);
  context.fillStyle = PAINT.you;
  context.fill();
  context.lineWidth = Math.max(1.5, 0.3 * r);
  context.strokeStyle = "#fff";
  context.stroke();
}

/** Coverage against steps. A curve: {name, colour, dash, found: steps of discoveries, now: steps so far, S}. */
function drawCurves(canvas, curves, ink) {
  const context = canvas.getContext("2d"), ratio = canvas.width / canvas.clientWidth || 1;
  const [left, right, top, bottom] = [44, 12, 10, 30].map((x) => x * ratio);
  const width = canvas.width - left - right, height = canvas.height - top - bottom;
  const last = Math.max(10, ...curves.map((curve) => curve.now));
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.fillStyle = context.strokeStyle = ink;
  context.lineWidth = ratio;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    const y = top + (1 - share) * height;
    context.globalAlpha = 0.25;
    line(context, [left, y], [left + width, y]);
    context.globalAlpha = 1;
    context.fillText(`${100 * share} %`, left - 6 * ratio, y);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const share of [0, 0.5, 1]) context.fillText(Math.round(share * last).toLocaleString("en"), left + share * width - (share === 1 ? 12 * ratio : 0), top + height + 6 * ratio);
  context.fillText("steps", left + 0.25 * width, top + height + 6 * ratio);
  for (const curve of curves) {
    context.strokeStyle = curve.colour;
    context.lineWidth = (curve.control ? 1.3 : 2.2) * ratio;
    context.setLineDash(curve.dash.map((x) => x * ratio));
    context.beginPath();
    context.moveTo(left, top + height);
    curve.found.forEach((t, i) => {
      const x = left + (t / last) * width;
      context.lineTo(x, top + (1 - i / curve.S) * height);
      context.lineTo(x, top + (1 - (i + 1) / curve.S) * height);
    });
    context.lineTo(left + (curve.now / last) * width, top + (1 - curve.found.length / curve.S) * height);
    context.stroke();
  }
  context.setLineDash([]);
}
