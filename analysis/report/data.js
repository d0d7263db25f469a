// The page's data: cells carry behaviours, pairs of behaviours carry verdicts, and here the two are joined.

const DATA = JSON.parse(document.getElementById("data").textContent);

const VERDICTS = {
  "=": { word: "identical", meaning: "the same bits in everything recorded, on the states that were exercised" },
  "≈": { word: "rounding", meaning: "apart by no more than one last place of the input can do to a step" },
  "~": { word: "amplified", meaning: "rounding at every forced step; over a trajectory the dynamics made more of it" },
  "✗": { word: "changed", meaning: "beyond the yardstick one step after a state that both were handed, or another reset, space, shape or dtype" },
  "!": { word: "nondeterministic", meaning: "a release does not reproduce itself: its comparisons are void" },
  "?": { word: "incomparable", meaning: "not started from the same state, or not on the same kind of machine" },
  "·": { word: "unavailable", meaning: "one of the two does not have the environment, or could not be installed or run" },
  " ": { word: "not compared", meaning: "the matrix does not ask for this pair" },
};

const MOST_ROWS = 60; // more rows than a screen has room for: releases that behave alike become one
const MOST_GROUPS = 120;

function prepared(matrix, place) {
  matrix.place = place;
  matrix.prefix = commonPrefix(matrix.releases.map((release) => release.name));
  matrix.environments.forEach((environment, index) => {
    environment.place = index;
    environment.matrix = matrix;
    environment.cells = environment.cells.flatMap(([cell, count]) => Array(count).fill(cell));
    environment.dumped = environment.cells.flatMap((cell, release) => (cell >= 0 ? [release] : []));
  });
  return matrix;
}

// `mujoco-` of `mujoco-3.1.0` and `mujoco-3.2.0`; versions alone are easier to read.
function commonPrefix(names) {
  const first = names[0] ?? "";
  let length = first.lastIndexOf("-") + 1;
  while (length > 0 && !names.every((name) => name.startsWith(first.slice(0, length)) && name.length > length)) {
    length = first.lastIndexOf("-", length - 2) + 1;
  }
  return first.slice(0, length);
}

const MATRICES = DATA.matrices.map(prepared);

const label = (matrix, release) => matrix.releases[release].name.slice(matrix.prefix.length);

// The sign of two behaviours, or of a cell that is missing.
function signOf(environment, one, other) {
  if (one < 0 || other < 0) {
    const signs = [one, other].filter((cell) => cell < 0).map((cell) => environment.missing[-1 - cell].verdict);
    return ["!", "?", "·"].find((sign) => signs.includes(sign));
  }
  if (one === other) return "=";
  const [low, high] = one < other ? [one, other] : [other, one];
  return environment.verdicts[(high * (high - 1)) / 2 + low];
}

// How many pairs of releases have each sign, without going through them.
function countPairs(environment) {
  const sizes = new Map();
  for (const cell of environment.cells) sizes.set(cell, (sizes.get(cell) ?? 0) + 1);
  const cells = [...sizes.keys()];
  const counts = {};
  const add = (sign, count) => { if (count) counts[sign] = (counts[sign] ?? 0) + count; };
  cells.forEach((one, place) => {
    add(signOf(environment, one, one), (sizes.get(one) * (sizes.get(one) - 1)) / 2);
    for (const other of cells.slice(0, place)) add(signOf(environment, one, other), sizes.get(one) * sizes.get(other));
  });
  return counts;
}

// The newest release that an environment has, and the sign of its step from the one before it.
function newestOf(environment) {
  const newest = environment.dumped.at(-1);
  if (newest === undefined) return null;
  const eventful = environment.neighbours.filter(([, newer]) => newer === newest);
  const worst = ["✗", "~", "≈", " "].find((sign) => eventful.some((each) => each[2] === sign));
  const boundary = eventful.find((each) => each[2] === worst);
  const series = environment.matrix.releases[newest].series;
  const before = environment.dumped.filter((place) => environment.matrix.releases[place].series === series).at(-2);
  return { newest, older: boundary ? boundary[0] : before, sign: worst ?? (before === undefined ? null : "=") };
}

// Rows of the heat map: single releases, or, where they are many, those that follow each other and behave alike.
function groupsOf(environment) {
  const { cells, dumped } = environment;
  if (cells.length <= MOST_ROWS) return { kind: "releases", groups: cells.map((cell, place) => ({ cell, members: [place] })) };
  const runs = [];
  for (const place of dumped) {
    if (runs.at(-1)?.cell === cells[place]) runs.at(-1).members.push(place);
    else runs.push({ cell: cells[place], members: [place] });
  }
  if (runs.length <= MOST_ROWS) return { kind: "runs", groups: runs };
  const classes = new Map();
  for (const place of dumped) {
    if (!classes.has(cells[place])) classes.set(cells[place], { cell: cells[place], members: [] });
    classes.get(cells[place]).members.push(place);
  }
  return { kind: "behaviours", groups: [...classes.values()].slice(-MOST_GROUPS) };
}

function groupLabel(matrix, { members }) {
  const first = label(matrix, members[0]);
  if (members.length === 1) return first;
  const together = members.at(-1) - members[0] + 1 === members.length;
  return `${first} ${together ? "…" : "⋯"} ${label(matrix, members.at(-1))} (${members.length})`;
}

// Of two groups, the releases that lie closest to each other, the older first.
function closest(one, other) {
  let best = null;
  for (const [older, newer] of [[one, other], [other, one]]) {
    let next = 0;
    for (const place of newer.members) {
      while (next < older.members.length && older.members[next] < place) next += 1;
      if (next && (!best || place - older.members[next - 1] < best[1] - best[0])) best = [older.members[next - 1], place];
    }
    if (best) return best;
  }
  return best;
}

// What is looked up for one pair is compressed, and unpacked when it is asked for.
const unpacked = new Map();

function details(name) {
  if (!unpacked.has(name)) unpacked.set(name, unpack(name));
  return unpacked.get(name);
}

async function unpack(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Addresses that can be sent: #matrix/environment/older/newer
function address(matrix, environment, older, newer) {
  const releases = [older, newer].filter((place) => place !== undefined).map((place) => matrix.releases[place].name);
  return "#" + [matrix.name, environment?.name, ...releases].filter(Boolean).map(encodeURIComponent).join("/");
}

function fromAddress(hash) {
  let names;
  try {
    names = hash.replace(/^#/, "").split("/").map(decodeURIComponent);
  } catch {
    names = [];
  }
  const matrix = MATRICES.find((each) => each.name === names[0]);
  const environment = matrix?.environments.find((each) => each.name === names[1]);
  const [older, newer] = [2, 3].map((place) => matrix?.releases.findIndex((each) => each.name === names[place]) ?? -1);
  return { matrix, environment, older, newer, isPair: Boolean(environment) && older >= 0 && newer >= 0 && older !== newer };
}
