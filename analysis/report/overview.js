// The first screen: is anything changed, where, since when.

function mark(sign, extra = "") {
  return el("span", { class: `mark ${extra}`, "data-sign": sign, "aria-hidden": "true" }, sign === " " ? "" : sign);
}

const verdict = (sign) => el("span", { class: "verdict" }, mark(sign), VERDICTS[sign].word);

function pairLink(environment, older, newer, ...text) {
  return el("a", { href: address(environment.matrix, environment, older, newer) }, ...text);
}

const boundaryText = (matrix, older, newer) => `${label(matrix, older)} → ${label(matrix, newer)}`;

// Changed neighbours of all environments, by boundary, the newest first.
function changedBoundaries(matrix) {
  const found = new Map();
  for (const environment of matrix.environments) {
    for (const [older, newer, sign] of environment.neighbours) {
      if (sign !== "✗") continue;
      const key = `${older}-${newer}`;
      if (!found.has(key)) found.set(key, { older, newer, environments: [] });
      found.get(key).environments.push(environment);
    }
  }
  return [...found.values()].sort((one, other) => other.newer - one.newer || other.older - one.older);
}

function hero(matrix) {
  const boundaries = changedBoundaries(matrix);
  const changed = matrix.environments.filter((each) => each.neighbours.some((neighbour) => neighbour[2] === "✗"));
  const dumped = matrix.environments.flatMap((each) => each.dumped.at(-1) ?? []);
  const newest = dumped.length ? Math.max(...dumped) : -1;
  const compared = matrix.environments.some((each) => each.dumped.length > 1);
  const title = changed.length
    ? `Changed in ${changed.length} of ${counted(matrix.environments.length, "environment")}`
    : compared ? "Nothing changed" : "Nothing could be compared";
  return el("section", { class: "hero", "aria-labelledby": "verdict" },
    el("h1", { id: "verdict" }, mark(changed.length ? "✗" : compared ? "=" : "·", "large"), title),
    newest >= 0 && newestLine(matrix, newest),
    boundaries.length > 0 && boundaries[0].newer !== newest && lastChangeLine(matrix, boundaries[0]),
    matrix.nights.length > 0 && el("p", {}, "Last night, ", el("strong", {}, matrix.nights[0].night), `: ${nightOutcome(matrix.nights[0])}.`),
    notices(matrix),
    el("p", { class: "quiet" },
      `${matrix.name}: ${counted(matrix.releases.length, "release")}`,
      matrix.releases.length > 1 && ` from ${matrix.releases[0].name} to ${matrix.releases.at(-1).name}`,
      `, audited ${matrix.finished}`));
}

function newestLine(matrix, newest) {
  const having = matrix.environments.map((environment) => [environment, newestOf(environment)])
    .filter(([, found]) => found?.newest === newest && found.sign);
  const changed = having.filter(([, found]) => found.sign === "✗");
  const name = el("strong", {}, matrix.releases[newest].name);
  if (!having.length) return el("p", {}, "The newest release, ", name, ", has nothing before it.");
  if (!changed.length) {
    const signs = [...new Set(having.map(([, found]) => VERDICTS[found.sign].word))];
    return el("p", {}, "The newest release, ", name, `, changed nothing: ${listed(signs)} in ${counted(having.length, "environment")}.`);
  }
  return el("p", {}, "The newest release, ", name, ", changed ",
    joined(changed.map(([environment, found]) => pairLink(environment, found.older, newest, environment.name)), 6), ".");
}

function lastChangeLine(matrix, { older, newer, environments }) {
  return el("p", {}, "Last change: ", el("strong", {}, boundaryText(matrix, older, newer)), ", in ",
    joined(environments.map((each) => pairLink(each, older, newer, each.name)), 6), ".");
}

function joined(links, most) {
  const shown = links.slice(0, most).flatMap((link, place) => (place ? [", ", link] : [link]));
  return links.length > most ? [...shown, ` and ${links.length - most} more`] : shown;
}

function notices(matrix) {
  const blind = matrix.environments.filter((each) => each.blind).map((each) => each.name);
  const broke = matrix.failures.reduce((sum, each) => sum + each.broke, 0);
  const lines = [];
  if (blind.length) lines.push(`Blind: a planted fault was not seen in ${listed(blind, 6)}. What is called the same there may not be.`);
  if (broke) lines.push(`${counted(broke, "cell")} can be run by an older release and no longer by a newer one: see what could not be audited.`);
  if (DATA.leftOut) lines.push(`To keep this file small it leaves out ${DATA.leftOut}. The database has them.`);
  return lines.map((line) => el("p", { class: "notice" }, line));
}

function legend(matrix) {
  const counts = {};
  for (const environment of matrix.environments) {
    for (const [sign, count] of Object.entries(countPairs(environment))) counts[sign] = (counts[sign] ?? 0) + count;
  }
  const rows = Object.entries(VERDICTS).filter(([sign]) => counts[sign] || "=≈~✗".includes(sign));
  return el("section", { class: "legend", "aria-labelledby": "legend" },
    el("h2", { id: "legend" }, "What the signs mean"),
    el("dl", {}, rows.map(([sign, { word, meaning }]) => el("div", {},
      el("dt", {}, mark(sign), word, el("span", { class: "count" }, counted(counts[sign] ?? 0, "pair"))),
      el("dd", {}, meaning)))));
}

// Ticks where neighbours differ, along the releases; the worse, the taller.
const TICKS = { "✗": 18, "~": 11, "≈": 6, " ": 2 };

function strip(environment) {
  const last = Math.max(1, environment.cells.length - 1);
  const place = (release) => ((release / last) * 196 + 2).toFixed(2);
  const lowFirst = [...environment.neighbours].sort((one, other) => TICKS[one[2]] - TICKS[other[2]]);
  const ticks = lowFirst.map(([older, newer, sign]) => {
    const middle = (Number(place(newer)) + Number(place(older))) / 2;
    return svg("rect", { "data-sign": sign, x: middle - 1.5, y: 18 - TICKS[sign], width: 3, height: TICKS[sign] });
  });
  const changes = environment.neighbours.filter((each) => each[2] === "✗").length;
  return svg("svg", { class: "strip", viewBox: "0 0 200 20", preserveAspectRatio: "none", role: "img",
    "aria-label": `${counted(changes, "change")} along the releases` },
    svg("line", { x1: 0, x2: 200, y1: 19, y2: 19 }), ticks);
}

function whereAndWhen(matrix) {
  const rows = matrix.environments.map((environment) => environmentRow(matrix, environment));
  return el("section", { "aria-labelledby": "where" },
    el("h2", { id: "where" }, "Where, and since when"),
    el("p", { class: "quiet" }, "A tall tick is a change between neighbouring releases, a middle one amplified rounding, a low one rounding. ",
      "Results are comparable where every two releases differ by no more than rounding; the physics is the same where trajectories part no faster than a release and its own twins."),
    el("div", { class: "scroll" }, el("table", { class: "where" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Environment"),
        el("th", { scope: "col", class: "ends" }, el("span", {}, label(matrix, 0)), el("span", {}, label(matrix, matrix.releases.length - 1))),
        ["Newest step", "Last change", "Results comparable since", "Physics the same since"].map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, shortened(rows, 60)))));
}

function environmentRow(matrix, environment) {
  const newest = newestOf(environment);
  const changes = environment.neighbours.filter((each) => each[2] === "✗");
  const last = changes.sort((one, other) => other[1] - one[1])[0];
  const since = (spans) => (newest ? sinceText(matrix, spans.find((each) => each.last === newest.newest)) : "nothing to compare");
  return el("tr", {},
    el("th", { scope: "row" }, el("a", { href: address(matrix, environment) }, environment.name)),
    el("td", {}, strip(environment)),
    el("td", { "data-label": "Newest step" }, newest?.sign ? pairLink(environment, newest.older, newest.newest, verdict(newest.sign)) : "nothing to compare"),
    el("td", { "data-label": "Last change" }, last ? pairLink(environment, last[0], last[1], boundaryText(matrix, last[0], last[1])) : "none"),
    el("td", { "data-label": "Results comparable since" }, since(environment.trajectories)),
    el("td", { "data-label": "Physics the same since" }, since(environment.steps)));
}

function sinceText(matrix, span) {
  return span && span.count > 1 ? `${label(matrix, span.first)} (${counted(span.count, "release")})` : "the newest only";
}

function spanText(matrix, { first, last, count }) {
  return count === 1 ? `${label(matrix, last)} alone` : `${label(matrix, first)} to ${label(matrix, last)} (${counted(count, "release")})`;
}

function whatChanged(matrix) {
  const boundaries = changedBoundaries(matrix);
  if (!boundaries.length) return null;
  const items = boundaries.map(({ older, newer, environments }) => el("li", {},
    el("span", { class: "boundary" }, boundaryText(matrix, older, newer)),
    el("span", { class: "chips" }, shortened(environments.map((each) => pairLink(each, older, newer, each.name)), 12))));
  return el("section", { "aria-labelledby": "changes" },
    el("h2", { id: "changes" }, "What changed, newest first"),
    el("ol", { class: "changes", role: "list" }, shortened(items, 10)));
}
