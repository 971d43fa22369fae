// Films of agents in a maze, drawn from recorded paths: where the agent was recently, what it was paid when it last entered each
// state, and the row of its state in its representation. The row is computed here, along the path or from the random walk.
const heat = ({ heat: stops }, x) => {  // the colour at x, 0 to 1
  const at = Math.min(Math.max(x, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  return `rgb(${stops[i].map((c, k) => Math.round(c + (at - i) * (stops[i + 1][k] - c)))})`;
};

// M[s, :] += eta (1(s) + gamma M[s', :] - M[s, :]); F likewise, but for its entry of s, where nothing follows.
const learner = ({ eta, gamma, matrix }, S, visited) => {
  let rows, steps = Infinity;
  return (t) => {
    if (t < steps) [rows, steps] = [new Float64Array(S * S), 0];
    for (; steps < t; steps++) {
      const s = visited[steps], here = s * S, there = visited[steps + 1] * S;
      const own = matrix === "F" ? rows[here + s] + eta * (1 - rows[here + s]) : null;
      for (let j = 0; j < S; j++) rows[here + j] += eta * (gamma * rows[there + j] + (j === s) - rows[here + j]);
      if (own !== null) rows[here + s] = own;
    }
    return rows.subarray(visited[t] * S, (visited[t] + 1) * S);
  };
};

// The row of the random walk: M = 1 + gamma P + (gamma P)^2 + ..., and F[s, s'] = M[s, s'] / M[s', s'].
const walker = ({ gamma, diagonal }, S, visited, moves) => (t) => {
  let mass = new Float64Array(S);
  const row = new Float64Array(S);
  mass[visited[t]] = 1;
  for (let left = 1; left > 1e-5; left *= gamma) {
    const next = new Float64Array(S);
    for (let s = 0; s < S; s++) {
      row[s] += mass[s];
      for (const there of moves[s]) next[there] += (gamma / moves[s].length) * mass[s];
    }
    mass = next;
  }
  return diagonal ? row.map((x, j) => x / diagonal[j]) : row;
};

const film = (section) => {
  const data = JSON.parse(section.querySelector("script").textContent);
  const { shape: [, width], cells, rooms, ways, path, bonuses, fade } = data;
  const all = (query) => section.querySelectorAll(query), [button] = all("button"), [slider] = all("input"), [said] = all("output");
  const [cursor] = all(".cursor"), canvases = [...all("canvas")], S = cells.length, index = {}, visited = [data.start];
  cells.forEach(([row, column], s) => (index[row + "," + column] = s));
  const move = (s, [down, right]) => index[cells[s][0] + down + "," + (cells[s][1] + right)] ?? s;
  for (const letter of path) visited.push(move(visited.at(-1), ways[letter]));
  const moves = cells.map((_, s) => "urdl".split("").map((letter) => move(s, ways[letter])));
  const paid = Uint8Array.from(atob(bonuses), (c) => c.charCodeAt(0));  // in steps of a 255th between the least and the most
  const row = data.matrix && (data.eta === null ? walker(data, S, visited, moves) : learner(data, S, visited));
  let step = path.length, playing = false, before = 0;

  const paint = (canvas, colour, s) => {
    const pen = canvas.getContext("2d"), size = canvas.width / width, style = getComputedStyle(section);
    const of = (name) => style.getPropertyValue(name);
    pen.globalAlpha = 1;
    pen.fillStyle = of("--wall");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    cells.forEach(([y, x], k) => {
      const [fill, alpha] = colour(k, of);
      for (const [paint, opacity] of [[of("--page"), 1], [fill, alpha]]) {
        pen.globalAlpha = opacity;
        pen.fillStyle = paint;
        pen.fillRect(x * size, y * size, size, size);
      }
    });
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.arc((cells[s][1] + 0.5) * size, (cells[s][0] + 0.5) * size, 0.42 * size, 0, 7);
    pen.fillStyle = of("--ink");
    pen.strokeStyle = of("--page");
    pen.lineWidth = 0.12 * size;
    pen.fill();
    pen.stroke();
  };
  const draw = () => {
    const t = Math.floor(step), last = Array(S).fill(-Infinity);
    for (let k = 0; k <= t; k++) last[visited[k]] = k;
    const ground = (k, of) => [of(`--room-${Math.max(rooms[k], 0)}`), rooms[k] < 0 ? 0 : Math.exp((last[k] - t) / fade)];
    const bonus = (k) => (last[k] > 0 ? [heat(data, paid[last[k] - 1] / 255), 1] : ["transparent", 0]);
    const from = row && row(t), [low, high] = data.scale ?? [];
    const entry = (k) => (from[k] > low ? [heat(data, Math.log(from[k] / low) / Math.log(high / low)), 1] : ["transparent", 0]);
    [ground, bonus, entry].slice(0, canvases.length).forEach((colour, i) => paint(canvases[i], colour, visited[t]));
    cursor.setAttribute("x", t);
    slider.value = t;
    said.textContent = "step " + String(t).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  };
  const frame = (now) => {
    if (!playing) return;
    step = Math.min(path.length, step + Math.min(Math.max(now - before, 0), 100) * 0.1);  // 100 steps per second
    before = now;
    draw();
    step < path.length ? requestAnimationFrame(frame) : play(false);
  };
  const play = (on) => {
    if (on === playing) return;
    if (on && step >= path.length) step = 0;
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (on) { before = performance.now(); requestAnimationFrame(frame); }
  };
  button.onclick = () => play(!playing);
  slider.oninput = () => { play(false); step = +slider.value; draw(); };
  addEventListener("beforeprint", () => { play(false); draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return { row, draw, play };
};

const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
document.querySelectorAll(".film").forEach((section) => {  // begun when it is first in sight, and played while it is
  let begun;
  const start = () => (begun = section.film ??= film(section));
  addEventListener("beforeprint", () => start().draw());
  new IntersectionObserver(([seen]) => {
    if (seen.isIntersecting && !begun) start().draw();
    if (begun && !still) begun.play(seen.isIntersecting);
  }, { threshold: 0.6 }).observe(section.querySelector(".maps3"));
});
