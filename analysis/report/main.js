// What is shown follows from the address: #matrix/environment/older/newer

const shown = { matrix: null, environment: null };
const main = document.getElementById("main");

function showMatrix(matrix) {
  shown.matrix = matrix;
  shown.environment = null;
  document.title = `${matrix.name} · release-audit`;
  document.getElementById("matrices").replaceChildren(...MATRICES.map((each) =>
    el("a", { href: address(each), "aria-current": each === matrix ? "page" : null }, each.name)));
  const maps = el("section", { id: "maps", "aria-labelledby": "maps-title" });
  main.replaceChildren(...[hero(matrix), whereAndWhen(matrix), whatChanged(matrix), maps, ranges(matrix), nights(matrix), failures(matrix), legend(matrix)].filter(Boolean));
  document.getElementById("about").replaceChildren(
    el("p", {}, `Run ${matrix.run} on ${matrix.machine}; verdicts read by ${matrix.reads}; release-audit ${DATA.version}. Times are UTC.`));
}

function showEnvironment(environment) {
  shown.environment = environment;
  const panel = el("article", { id: "pair", "aria-labelledby": "pair-title" }, placeholder(environment));
  const open = (older, newer) => { openPair(address(shown.matrix, environment, older, newer)); };
  document.getElementById("maps").replaceChildren(
    el("h2", { id: "maps-title" }, "Every pair"),
    smallMaps(shown.matrix, environment, (each) => { location.hash = address(shown.matrix, each); }),
    el("div", { class: "map-and-pair" },
      el("div", { class: "map-side" }, el("h3", { id: "map-title" }, environment.name), mapKey(environment), heatmap(environment, open), behaviours(environment)),
      panel));
}

function mapKey(environment) {
  const counts = countPairs(environment);
  const signs = Object.keys(VERDICTS).filter((sign) => "=≈~✗".includes(sign) || counts[sign]);
  return el("p", { class: "map-key" }, signs.map((sign) => el("span", {}, mark(sign), VERDICTS[sign].word)));
}

function placeholder(environment) {
  return el("div", { class: "empty" }, el("h3", { id: "pair-title", tabindex: -1 }, "Choose a pair"),
    el("p", {}, "Click a cell, or move with the arrow keys and press Enter. The newer release is the row's, the older one the column's."),
    environment.dumped.length > 1 && el("p", {}, pairLink(environment, environment.dumped.at(-2), environment.dumped.at(-1), "Open the newest pair")));
}

// The same address twice does not change it, but whoever asks for a pair again wants to be taken there.
function openPair(target) {
  if (location.hash === target) follow(true);
  else location.hash = target;
}

async function follow(jump) {
  const wanted = fromAddress(location.hash);
  const matrix = wanted.matrix ?? shown.matrix ?? MATRICES[0];
  if (matrix !== shown.matrix) showMatrix(matrix);
  const environment = wanted.environment ?? shown.environment ?? firstOf(matrix);
  if (!environment) return;
  if (environment !== shown.environment) showEnvironment(environment);
  const panel = document.getElementById("pair");
  if (wanted.isPair) {
    markChosen(environment, wanted);
    await fillPair(panel, environment, Math.min(wanted.older, wanted.newer), Math.max(wanted.older, wanted.newer));
    if (jump) arrive(document.getElementById("pair-title"));
  } else if (jump && wanted.environment) {
    arrive(document.getElementById("maps-title"));
  }
}

function arrive(target) {
  target.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
  const { top, bottom } = target.getBoundingClientRect();
  if (top < 0 || bottom > innerHeight * 0.8) target.closest("article, section").scrollIntoView({ block: "start" });
}

function markChosen(environment, { older, newer }) {
  const { groups } = groupsOf(environment);
  const places = [older, newer].map((release) => groups.findIndex((group) => group.members.includes(release)));
  const table = document.querySelector("table.map");
  table.querySelectorAll("[aria-selected]").forEach((each) => each.removeAttribute("aria-selected"));
  if (places[0] !== places[1] && Math.min(...places) >= 0) {
    const cell = table.rows[Math.max(...places)].cells[Math.min(...places)];
    cell.setAttribute("aria-selected", "true");
    table.querySelector("td[tabindex='0']")?.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
  }
}

// What people come for: an environment that changed, the most recent first.
function firstOf(matrix) {
  const last = (environment) => Math.max(-1, ...environment.neighbours.filter((each) => each[2] === "✗").map((each) => each[1]));
  return [...matrix.environments].sort((one, other) => last(other) - last(one) || one.place - other.place)[0];
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !event.target.closest("#pair")) return;
  document.querySelector("table.map td[tabindex='0']")?.focus();
});
addEventListener("hashchange", () => follow(true));
follow(true);
