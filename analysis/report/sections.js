// What follows the maps: ranges, behaviours, nights, failures.

function ranges(matrix) {
  const several = new Set(matrix.releases.map((release) => release.series)).size > 1;
  const list = (spans) => {
    const items = [...spans].reverse().map((span) =>
      el("li", {}, several && span.series && el("span", { class: "quiet" }, `${span.series}: `), spanText(matrix, span)));
    return el("ul", { class: "spans" }, shortened(items, 4));
  };
  const rows = matrix.environments.filter((each) => each.dumped.length).map((environment) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: address(matrix, environment) }, environment.name)),
    el("td", { "data-label": "Results are comparable" }, list(environment.trajectories)),
    el("td", { "data-label": "Physics is the same" }, list(environment.steps))));
  if (!rows.length) return null;
  return el("section", { "aria-labelledby": "ranges" }, el("h2", { id: "ranges" }, "Safe upgrade ranges"),
    el("p", { class: "quiet" }, "Within a range every two releases were held against each other. Results are comparable where all are identical or rounding. ",
      "The physics is the same where single steps are; trajectories may part there, as fast as those of a release and its own twins. Ranges may overlap, because rounding adds up."),
    el("div", { class: "scroll" }, el("table", { class: "ranges" }, el("thead", {}, el("tr", {},
      el("th", { scope: "col" }, "Environment"), el("th", { scope: "col" }, "Results are comparable"), el("th", { scope: "col" }, "Physics is the same"))),
      el("tbody", {}, shortened(rows, 60)))));
}

// Releases with the same bits, of one environment.
function behaviours(environment) {
  const matrix = environment.matrix;
  const classes = new Map();
  for (const place of environment.dumped) {
    const runs = classes.get(environment.cells[place]) ?? [];
    if (runs.at(-1)?.last === place - 1) runs.at(-1).last = place;
    else runs.push({ first: place, last: place });
    classes.set(environment.cells[place], runs);
  }
  const told = ({ first, last }) => (first === last ? label(matrix, first) : `${label(matrix, first)} to ${label(matrix, last)}`);
  const items = [...classes.entries()].map(([cell, runs]) => el("li", {}, el("strong", {}, `${cell + 1}`), " ", listed(runs.map(told), 8)));
  return el("details", { class: "behaviours" },
    el("summary", {}, `${counted(classes.size, "distinct behaviour")}: releases with the same bits`), el("ol", { role: "list" }, shortened(items, 40)));
}

function nights(matrix) {
  if (!matrix.nights.length) return null;
  const rows = matrix.nights.map((night) => el("tr", {},
    el("th", { scope: "row" }, night.night),
    el("td", { "data-label": "New releases" }, listed(night.news, 4) || "none"),
    el("td", { "data-label": "Came to" }, night.new > 0 && mark("✗"), nightOutcome(night)),
    el("td", { "data-label": "Changes" }, night.changes.length > 0 && el("details", {},
      el("summary", {}, counted(night.changes.length, "change")), el("ul", {}, night.changes.map((each) => nightChange(matrix, each)))))));
  return el("section", { "aria-labelledby": "nights" }, el("h2", { id: "nights" }, "Nights"),
    el("div", { class: "scroll" }, el("table", { class: "nights" }, el("thead", {}, el("tr", {},
      ["Night", "New releases", "Came to", "Changes"].map((title) => el("th", { scope: "col" }, title)))), el("tbody", {}, shortened(rows, 30)))));
}

function nightOutcome(night) {
  const parts = [[night.new, "new"], [night.waived, "waived"], [night.known, "known"], [night.not_audited, "not audited"]]
    .filter(([count]) => count).map(([count, word]) => `${count} ${word}`); // changes, but for the last
  const unfinished = { 3: "not completed" }[night.exit_code] ?? (night.exit_code === null ? "interrupted" : "");
  return [...parts, unfinished].filter(Boolean).join(", ") || (night.news.length ? "nothing changed" : "nothing new");
}

function nightChange(matrix, each) {
  const environment = matrix.environments.find((one) => one.name === each.environment);
  const [older, newer] = [each.older, each.newer].map((name) => matrix.releases.findIndex((release) => release.name === name));
  const text = `${each.environment}: ${each.older} → ${each.newer}`;
  const link = environment && older >= 0 && newer >= 0 ? pairLink(environment, older, newer, text) : text;
  return el("li", {}, link, ` (${each.standing})`, each.waiver && `: ${each.waiver}`);
}

function failures(matrix) {
  if (!matrix.failures.length) return null;
  const items = matrix.failures.map((each) => el("li", {},
    el("p", {}, el("strong", {}, each.status), ` while ${STAGES[each.stage] ?? each.stage}: `, each.reason),
    each.broke > 0 && el("p", { class: "notice" }, `${counted(each.broke, "of them is", "of them are")} run by an older release: it broke.`),
    el("p", { class: "quiet subjects" }, each.subjects.join(", "), each.more > 0 && ` and ${each.more.toLocaleString("en")} more`),
    each.tail && el("details", {}, el("summary", {}, "What it printed last"), el("pre", {}, each.tail))));
  return el("section", { "aria-labelledby": "failures" }, el("h2", { id: "failures" }, "What could not be audited"),
    el("ul", { class: "failures", role: "list" }, shortened(items, 20)));
}

const STAGES = { resolve: "resolving", build: "building", probe: "probing", dump: "dumping", install: "installing", laws: "holding it against laws" };
