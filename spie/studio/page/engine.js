// SARSA with an intrinsic reward: Algorithm 1 of the paper, step for step and bit for bit as the compiled engine has it.
//
// Numbers are doubles and every sum is taken in the engine's order, so the same seed gives the same path, bonus and Q.
// A random word has 64 bits, kept as two halves of 32. Names are the paper's: M, F, N, Q; s, a, r; alpha, eta, gamma.

const GOLDEN = [0x9e3779b9, 0x7f4a7c15]; // high half, low half
const TWO_32 = 4294967296;

/** (high, low) of the sum of two words. */
function add(a, b) {
  const low = a[1] + b[1];
  return [(a[0] + b[0] + (low >= TWO_32 ? 1 : 0)) >>> 0, low >>> 0];
}

/** (high, low) of the product of two words. */
function multiply(a, b) {
  [H, L] = a;
  scale(b[0], b[1]);
  return [H, L];
}

/** a XOR (a >> n), 0 < n < 32. */
function foldRight(a, n) {
  return [(a[0] ^ (a[0] >>> n)) >>> 0, (a[1] ^ ((a[1] >>> n) | (a[0] << (32 - n)))) >>> 0];
}

let H = 0, L = 0; // the halves of the last random word: an object for each would be most of a step's time

/** SplitMix64's output function: equally spaced words in, random words out, into H and L. */
function mix(high, low) {
  [H, L] = [high, low];
  fold(30);
  scale(0xbf58476d, 0x1ce4e5b9);
  fold(27);
  scale(0x94d049bb, 0x133111eb);
  fold(31);
}

/** (H, L) XOR (H, L) >> n. */
function fold(n) {
  L = (L ^ ((L >>> n) | (H << (32 - n)))) >>> 0;
  H = (H ^ (H >>> n)) >>> 0;
}

/** (H, L) times (high, low). */
function scale(high, low) {
  const a0 = L & 0xffff, a1 = L >>> 16, b0 = low & 0xffff, b1 = low >>> 16;
  const middle = (a1 * b0 + ((a0 * b0) >>> 16)) >>> 0, other = (a0 * b1 + (middle & 0xffff)) >>> 0;
  H = (a1 * b1 + (middle >>> 16) + (other >>> 16) + Math.imul(H, low) + Math.imul(L, high)) >>> 0;
  L = Math.imul(L, low) >>> 0;
}

function mixed(word) {
  mix(word[0], word[1]);
  return [H, L];
}

/** How many bits of a 32-bit number are set. */
function bitCount(x) {
  let n = 0;
  for (; x !== 0; x &= x - 1) n++;
  return n;
}

/** Key and stride of a seed's stream: its word i is mix(key + i * stride). */
function randomStream(seed) {
  const doubled = add([Math.floor(seed / TWO_32), seed >>> 0], [Math.floor(seed / TWO_32), seed >>> 0]);
  const word = multiply(add(doubled, [0, 1]), GOLDEN);
  let stride = mixed(add(word, GOLDEN));
  stride = [stride[0], (stride[1] | 1) >>> 0];
  const changes = foldRight(stride, 1);
  if (bitCount(changes[0]) + bitCount(changes[1]) < 24) {
    stride = [(stride[0] ^ 0xaaaaaaaa) >>> 0, (stride[1] ^ 0xaaaaaaaa) >>> 0];
  }
  return { key: mixed(word), stride };
}

/** The words that end the share of each outcome but the last: outcome k is drawn below threshold k. */
function thresholds(probabilities) {
  let total = 0;
  const words = [];
  for (const p of probabilities) {
    total += p;
    const end = Math.min(total * 18446744073709551616, 18446744073709549568);
    const high = Math.floor(end / TWO_32);
    words.push([high, Math.floor(end - high * TWO_32)]);
  }
  return words.slice(0, -1);
}

/** Which outcome the word in H and L draws. */
function outcome(ends) {
  let k = 0;
  for (const end of ends) k += H > end[0] || (H === end[0] && L >= end[1]) ? 1 : 0;
  return k;
}

// Every intrinsic reward that the engine learns its matrices for: what it asks for, and its formula.
const REWARDS = {
  "none": { needs: [], of: () => 0, says: "nothing: the task's own reward alone" },
  "sr": { needs: ["M_row"], of: (q) => 1 / q.M_row, says: "1 / |M[s, :]|" },
  "fr": { needs: ["F_row"], of: (q) => q.F_row, says: "|F[s, :]|" },
  "fr-next": { needs: ["F_row_next"], of: (q) => q.F_row_next, says: "|F[s′, :]|" },
  "sr-r": { needs: ["M_next", "M_col_next"], of: (q) => q.M_next - q.M_col_next, says: "M[s, s′] − |M[:, s′]|" },
  "sr-r(a)": { needs: ["M_next"], of: (q) => q.M_next, says: "M[s, s′]" },
  "sr-r(b)": { needs: ["M_col_next"], of: (q) => -q.M_col_next, says: "−|M[:, s′]|" },
  "sr-r(c)": { needs: ["M_row", "M_next"], of: (q) => q.M_row - q.M_next, says: "|M[s, :]| − M[s, s′]" },
  "sr-pr": { needs: ["M_next", "N_col_next"], of: (q) => q.M_next - q.N_col_next, says: "M[s, s′] − |N[:, s′]|" },
  "constant": { needs: [], of: () => -1, says: "−1 a step: a control, no representation at all" },
  "count": { needs: ["visits_next"], of: (q) => 1 / Math.sqrt(q.visits_next), says: "1 / √visits of s′: a control" },
};

/** The defaults of spie.Sarsa. */
const SARSA = {
  reward: "sr-r", alpha: 0.1, eta: 0.1, gamma: 0.95, gamma_sr: 0.95, eta_pr: null, gamma_pr: null, beta: 1,
  epsilon: 0.1, q0: 0, policy: "epsilon-greedy", inverse_temperature: 1,
};
const TIE_TOLERANCE = 1e-9;

/** One run of an agent's settings on one seed of one MDP. `all`: keep M, F and N whether or not the reward asks. */
class Lane {
  constructor(mdp, settings, seed, all = false) {
    const S = mdp.S, s = { ...SARSA, ...settings };
    const needs = REWARDS[s.reward].needs.join();
    this.mdp = mdp;
    this.settings = s;
    this.eta_pr = s.eta_pr ?? s.eta;
    this.gamma_pr = s.gamma_pr ?? s.gamma_sr;
    this.epsilon = roundHalfEven(s.epsilon * TWO_32);
    this.M = all || /M_next|M_col/.test(needs) ? new Float64Array(S * S) : null;
    this.F = all || /F_/.test(needs) ? new Float64Array(S * S) : null;
    this.N = all ? new Float64Array(S * S) : null; // its sums obey a rule of their own; row s' holds column s'
    this.M_rows = new Float64Array(S); // sums over rows of M, columns of M, rows of F, columns of N
    this.M_columns = new Float64Array(S);
    this.F_rows = new Float64Array(S);
    this.N_columns = new Float64Array(S);
    this.weights = new Float64Array(mdp.A);
    this.Q = new Float64Array(S * mdp.A).fill(s.q0);
    this.visits = new Int32Array(S);
    this.seen = this.t = this.episode = this.length = this.phase = 0;
    this.totalReward = this.totalBonus = 0;
    this.over = ""; // why the run cannot go on
    const { key, stride } = randomStream(seed);
    [this.strideHigh, this.strideLow] = stride;
    [this.high, this.low] = add(key, multiply([0, 3], stride)); // step t, from 1, uses the words 4t, ..., 4t + 3
    this.nextWord();
    this.enter(mdp.starts[outcome(mdp.startEnds)]);
    this.last = null; // the last step
  }

  /** The next random word of this run, into H and L. */
  nextWord() {
    const { high, low } = this, sum = low + this.strideLow;
    this.low = sum >>> 0;
    this.high = (high + this.strideHigh + (sum >= TWO_32 ? 1 : 0)) >>> 0;
    mix(high, low);
  }

  enter(s) {
    this.s = s;
    if (this.visits[s]++ === 0) this.seen++;
  }

  /** The actions that reach the largest value of state s up to rounding, a bit each. */
  greedy(s) {
    const { Q, mdp } = this, legal = mdp.available[s], first = s * mdp.A;
    let best = -Infinity;
    for (let a = 0; a < mdp.A; a++) if ((legal >>> a) & 1) best = Math.max(best, Q[first + a]);
    const bound = best - TIE_TOLERANCE * Math.max(1, Math.abs(best));
    let actions = 0;
    for (let a = 0; a < mdp.A; a++) if ((legal >>> a) & 1 && !(Q[first + a] < bound)) actions |= 1 << a;
    return actions;
  }

  /** An action for state s, by the word in H and L. */
  draw(s) {
    return this.settings.policy === "softmax" ? this.drawSoftmax(s) : this.drawEpsilonGreedy(s);
  }

  /** Actions with chances proportional to exp(inverse_temperature Q[s, a]). */
  drawSoftmax(s) {
    const { Q, mdp, weights } = this, { inverse_temperature: hot } = this.settings, legal = mdp.available[s], first = s * mdp.A;
    let best = -Infinity, sum = 0;
    for (let a = 0; a < mdp.A; a++) if ((legal >>> a) & 1) best = Math.max(best, Q[first + a] * hot);
    for (let a = 0; a < mdp.A; a++) {
      weights[a] = (legal >>> a) & 1 ? exponential(Q[first + a] * hot - best) : 0;
      sum += weights[a];
    }
    const left = (H * 2097152 + (L >>> 11)) * 2 ** -53 * sum;
    let chosen = 0, total = 0;
    for (let a = 0; a < mdp.A; a++) {
      if (left >= total) chosen = a;
      total += weights[a];
    }
    return chosen;
  }

  /** The upper half of the word decides whether to explore, the lower half which action it is. */
  drawEpsilonGreedy(s) {
    const options = H < this.epsilon ? this.mdp.available[s] : this.greedy(s);
    let left = Math.floor((L * bitCount(options)) / TWO_32);
    for (let a = 0; ; a++) if ((options >>> a) & 1 && left-- === 0) return a;
  }

  /** Act, learn M, F and N, be paid, learn Q; the step, or null where the run is over. `action`: take it instead. */
  step(action = -1) {
    if (this.over) return null;
    const { mdp, settings, s } = this;
    this.nextWord();
    const a = action < 0 ? this.draw(s) : action;
    this.nextWord();
    const k = mdp.K === 1 ? 0 : outcome(mdp.ends[s * mdp.A + a]);
    const i = (s * mdp.A + a) * mdp.K + k;
    const s_next = mdp.next[i];
    const r = mdp.reward[this.phase * mdp.S * mdp.A * mdp.K + i];
    const discount = mdp.terminal[this.phase * mdp.S + s_next] ? 0 : 1;
    if (this.visits[s_next]++ === 0) this.seen++;
    this.learnM(s, s_next, discount);
    this.learnF(s, s_next, discount);
    this.learnN(s, s_next);
    const bonus = REWARDS[settings.reward].of(this.quantities(s, s_next));
    this.nextWord();
    const a_next = this.draw(s_next);
    const error = r + settings.beta * bonus + settings.gamma * discount * this.Q[s_next * mdp.A + a_next]
      - this.Q[s * mdp.A + a];
    this.t++;
    if (!Number.isFinite(error)) {
      this.over = `step ${this.t}: numbers are no longer finite`;
      return null;
    }
    this.Q[s * mdp.A + a] += settings.alpha * error;
    this.totalReward += r;
    this.totalBonus += bonus;
    this.last = { s, a, s_next, r, bonus, done: discount === 0 };
    this.s = s_next;
    this.length++;
    this.nextWord();
    if (discount === 0) {
      this.length = 0;
      this.episode++;
      if (mdp.episodesPerPhase > 0) this.phase = Math.floor(this.episode / mdp.episodesPerPhase) % mdp.G;
      this.enter(mdp.starts[outcome(mdp.startEnds)]);
    }
    return this.last;
  }

  quantities(s, s_next) {
    const S = this.mdp.S;
    return {
      M_next: this.M ? this.M[s * S + s_next] : 0,
      M_row: this.M_rows[s],
      M_col_next: this.M_columns[s_next],
      F_row: this.F_rows[s],
      F_row_next: this.F_rows[s_next],
      N_col_next: this.N_columns[s_next],
      visits_next: this.visits[s_next],
    };
  }

  /** M[s, :] += eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), and the sums of M. */
  learnM(s, s_next, discount) {
    const { M, M_rows: rows, M_columns: columns } = this, S = this.mdp.S;
    const { eta } = this.settings, gamma = this.settings.gamma_sr * discount;
    rows[s] += eta * (1 + gamma * rows[s_next] - rows[s]);
    if (!M) return;
    const row = s * S, nextRow = s_next * S;
    const own = eta * (1 + gamma * M[nextRow + s] - M[row + s]);
    const M_s = M[row + s] + own, sum_s = columns[s] + own;
    for (let x = 0; x < S; x++) {
      const change = eta * (gamma * M[nextRow + x] - M[row + x]);
      M[row + x] += change;
      columns[x] += change;
    }
    M[row + s] = M_s;
    columns[s] = sum_s;
  }

  /** F[s, :] += eta (1(s) + gamma_SR (1 - done) (1 - 1(s)) F[s', :] - F[s, :]), and the sum of the row. */
  learnF(s, s_next, discount) {
    const { F, F_rows: rows } = this, S = this.mdp.S;
    if (!F) return;
    const { eta } = this.settings, gamma = this.settings.gamma_sr * discount;
    const row = s * S, nextRow = s_next * S;
    const later = rows[s_next] - F[nextRow + s];
    rows[s] += eta * (1 + gamma * later - rows[s]);
    const F_s = F[row + s] + eta * (1 - F[row + s]);
    for (let x = 0; x < S; x++) F[row + x] += eta * (gamma * F[nextRow + x] - F[row + x]);
    F[row + s] = F_s;
  }

  /** N[:, s'] += eta_PR (1(s') + gamma_PR N[:, s] - N[:, s']), and the sum of the column. */
  learnN(s, s_next) {
    const { N, N_columns: columns, eta_pr: eta, gamma_pr: gamma } = this, S = this.mdp.S;
    columns[s_next] += eta * (1 + gamma * columns[s] - columns[s_next]);
    if (!N) return;
    const column = s * S, nextColumn = s_next * S;
    const N_s = N[nextColumn + s_next] + eta * (1 + gamma * N[column + s_next] - N[nextColumn + s_next]);
    for (let x = 0; x < S; x++) N[nextColumn + x] += eta * (gamma * N[column + x] - N[nextColumn + x]);
    N[nextColumn + s_next] = N_s;
  }
}

const FACTORIALS = [1, 1]; // 1 / n!
for (let n = 2, product = 1; n < 14; n++) FACTORIALS.push(1 / (product *= n));

/** exp(x) by additions and multiplications alone, each rounded by itself, as spie/engine/exponential.py has it. */
function exponential(x) {
  if (x < -708) return 0;
  x = Math.min(x, 708);
  const k = Math.floor(x * 1.4426950408889634 + 0.5);
  const r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10;
  let p = FACTORIALS[13];
  for (let n = 12; n >= 0; n--) p = p * r + FACTORIALS[n];
  return p * 2 ** k;
}

/** To the nearest whole number, as Python rounds. */
function roundHalfEven(x) {
  const low = Math.floor(x), part = x - low;
  return part < 0.5 || (part === 0.5 && low % 2 === 0) ? low : low + 1;
}
