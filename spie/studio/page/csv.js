// Paths as tables: the columns that `spie fit` reads, one line per state, with the action taken there and its reward.

const COLUMNS = ["subject", "session", "trial", "step", "state", "action", "reward"];
const MOST_BYTES = 20_000_000;

/** A cell of a CSV; what a spreadsheet would take for a formula is given as text. */
function cell(value) {
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?(e-?\d+)?$/i.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Trials as CSV: each has states, and one action and reward fewer. */
function pathsToCsv(subject, trials) {
  const lines = [COLUMNS.join(",")];
  trials.forEach((trial, i) => {
    trial.states.forEach((s, step) => {
      lines.push([subject, 1, i + 1, step, s, trial.actions[step] ?? "", trial.rewards[step] ?? ""].map(cell).join(","));
    });
  });
  return `${lines.join("\n")}\n`;
}

/** The cells of a line, quotes understood. */
function splitLine(text, separator) {
  const cells = [];
  let inside = false, now = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inside && c === '"' && text[i + 1] === '"') { now += '"'; i++; }
    else if (c === '"') inside = !inside;
    else if (c === separator && !inside) { cells.push(now); now = ""; }
    else now += c;
  }
  cells.push(now);
  return cells.map((x) => x.trim());
}

/** Trials by subject from a CSV or TSV: {subject: [[state, ...], ...]}, checked against a world. */
function csvToPaths(text, world) {
  if (text.length > MOST_BYTES) throw new Mistake("This file is larger than 20 MB; overlay a part of it.");
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  if (lines.length < 2) throw new Mistake("This file has no lines of data: it needs a line of column names and one line per state.");
  const separator = lines[0].includes("\t") ? "\t" : ",";
  const names = splitLine(lines[0], separator).map((name) => name.toLowerCase());
  const column = Object.fromEntries(names.map((name, i) => [name, i]));
  const stateOf = stateReader(column, world);
  const paths = new Map();
  for (let i = 1; i < lines.length; i++) {
    const cells = splitLine(lines[i], separator), of = (name) => (name in column ? cells[column[name]] ?? "" : "");
    const s = stateOf(of, i + 1), subject = of("subject") || "1", trial = `${of("session")}/${of("trial")}`;
    if (!paths.has(subject)) paths.set(subject, new Map());
    const trials = paths.get(subject);
    if (!trials.has(trial)) trials.set(trial, []);
    trials.get(trial).push(s);
  }
  return new Map([...paths].map(([subject, trials]) => [subject, [...trials.values()]]));
}

/** How a line says where it is: by state, by row and column, or by x and y. */
function stateReader(column, world) {
  const S = world.mdp.S, whole = (text) => (/^\d+$/.test(text) ? Number(text) : NaN);
  const cellAt = (row, col, line) => {
    const { board } = world;
    const inside = Number.isInteger(row) && Number.isInteger(col) && board.inside(row, col);
    const s = inside ? world.state[row * board.columns + col] : -1;
    if (s < 0) throw new Mistake(`Line ${line}: row ${row}, column ${col} is no free cell of this maze.`);
    return s;
  };
  if ("state" in column) {
    return (of, line) => {
      const text = of("state"), s = world.labels.includes(text) ? world.labels.indexOf(text) : whole(text);
      if (!(s < S)) throw new Mistake(`Line ${line}: state "${text}" is none of this maze, which has the states 0 to ${S - 1}.`);
      return s;
    };
  }
  if (world.board && "row" in column && "column" in column) return (of, line) => cellAt(whole(of("row")), whole(of("column")), line);
  if (world.board && "x" in column && "y" in column) {
    return (of, line) => cellAt(Math.floor(parseFloat(of("y"))), Math.floor(parseFloat(of("x"))), line);
  }
  throw new Mistake(`This file has the columns ${Object.keys(column).join(", ")}; it needs state, or row and column, or x and y.`);
}
