// A release × release map of verdicts, one half of the square: the row's release is the newer one. Its name stands on
// the diagonal, where it is at the end of its row and on top of its column.

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = { "≈": "rounding", "~": "amplified", "✗": "changed", "!": "nondeterministic", "?": "incomparable" };
  return Object.fromEntries(Object.entries(names).map(([sign, name]) => [sign, style.getPropertyValue(`--${name}`)]));
}

function heatmap(environment, opened) {
  const { kind, groups } = groupsOf(environment);
  const matrix = environment.matrix;
  const status = el("p", { class: "status", "aria-live": "polite" });
  const rows = groups.map((group, row) => el("tr", {},
    groups.slice(0, row).map((older, column) => mapCell(environment, older, group, row, column)),
    el("th", { scope: "row", class: "diagonal", colspan: groups.length - row + 1 }, groupLabel(matrix, group))));
  const table = el("table", { class: "map", role: "grid", "aria-label": `Verdicts of ${environment.name}, newer releases below, older to the left` },
    el("tbody", {}, rows));
  table.style.setProperty("--count", groups.length);
  const longest = Math.max(...groups.map((group) => groupLabel(matrix, group).length));
  table.style.setProperty("--reserve", `${longest * 0.46 + 0.8}rem`);
  const pick = (cell, focus) => {
    if (!cell?.dataset.sign) return;
    table.querySelector("td[tabindex='0']")?.setAttribute("tabindex", "-1");
    cell.setAttribute("tabindex", "0");
    if (focus) cell.focus();
    status.textContent = cell.getAttribute("aria-label");
  };
  table.addEventListener("keydown", (event) => moved(event, table, pick));
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell?.dataset.sign) { pick(cell, false); opened(Number(cell.dataset.older), Number(cell.dataset.newer)); }
  });
  table.addEventListener("pointerover", (event) => pointed(event.target.closest("td"), table, status));
  pick(table.rows[groups.length - 1]?.cells[Math.max(0, groups.length - 2)], false);
  status.textContent = "";
  return el("div", { class: "heatmap" }, groupNote(environment, kind, groups), el("div", { class: "scroll map-frame" }, table), status);
}

function mapCell(environment, older, newer, row, column) {
  const sign = signOf(environment, older.cell, newer.cell);
  const [one, other] = closest(older, newer);
  const said = `${environment.matrix.releases[one].name} → ${environment.matrix.releases[other].name}: ${VERDICTS[sign].word}`;
  return el("td", { role: "gridcell", tabindex: -1, "aria-label": said, "data-sign": sign, "data-row": row, "data-column": column,
    "data-older": one, "data-newer": other }, sign);
}

function groupNote(environment, kind, groups) {
  if (kind === "releases") return null;
  const together = kind === "runs" ? "that follow each other and behave alike to the last bit" : "that behave alike to the last bit";
  const left = environment.behaviours - new Set(groups.map((group) => group.cell)).size;
  return el("p", { class: "quiet" }, `A row stands for releases ${together}: ${counted(groups.length, "row")} for ${counted(environment.dumped.length, "release")}. `,
    left > 0 && `${counted(left, "earlier behaviour")} are not drawn. `, "Any two releases can be chosen beside it.");
}

// Where it is, seen from the cell: its row and its column.
function pointed(cell, table, status) {
  table.querySelectorAll(".on").forEach((each) => each.classList.remove("on"));
  if (!cell?.dataset.sign) return;
  status.textContent = cell.getAttribute("aria-label");
  for (const place of [cell.dataset.row, cell.dataset.column]) table.rows[place].lastElementChild.classList.add("on");
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function moved(event, table, pick) {
  const cell = event.target.closest("td");
  if (!cell) return;
  let [row, column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
  if (event.key in STEPS) [row, column] = [row + STEPS[event.key][0], column + STEPS[event.key][1]];
  else if (event.key === "Home") column = 0;
  else if (event.key === "End") column = row - 1;
  else if (event.key === "Enter" || event.key === " ") cell.click();
  else return;
  event.preventDefault();
  if (column >= row && event.key === "ArrowUp") column = row - 1; // along the diagonal
  const next = row >= 0 && column >= 0 ? table.rows[row]?.cells[column] : null;
  if (next && next !== cell && next.dataset.sign) {
    pick(next, true);
    pointed(next, table, { textContent: "" });
  }
}

// All environments as small maps: each is the way to its large one.
function smallMaps(matrix, current, opened) {
  return el("div", { class: "small-maps", role: "group", "aria-label": "Environments" }, matrix.environments.map((environment) => {
    const canvas = el("canvas", { width: 96, height: 96, "aria-hidden": "true" });
    drawSmall(canvas, environment);
    const changes = environment.neighbours.filter((each) => each[2] === "✗").length;
    return el("button", { type: "button", "aria-pressed": String(environment === current), onclick: () => opened(environment) },
      canvas, el("span", {}, environment.name), el("small", {}, changes ? counted(changes, "change") : environment.dumped.length > 1 ? "no change" : "nothing to compare"));
  }));
}

const smalls = new Map();

function drawSmall(canvas, environment) {
  smalls.set(canvas, environment);
  const { groups } = groupsOf(environment);
  const context = canvas.getContext("2d");
  const side = canvas.width / Math.max(1, groups.length);
  const fills = colours();
  context.clearRect(0, 0, canvas.width, canvas.height);
  groups.forEach((newer, row) => groups.slice(0, row).forEach((older, column) => {
    const fill = fills[signOf(environment, older.cell, newer.cell)];
    if (!fill) return;
    context.fillStyle = fill;
    context.fillRect(Math.floor(column * side), Math.floor(row * side), Math.ceil(side), Math.ceil(side));
  }));
}

// Colours of a canvas do not follow the scheme by themselves.
function redrawSmalls() {
  for (const [canvas, environment] of smalls) {
    if (canvas.isConnected) drawSmall(canvas, environment);
    else smalls.delete(canvas);
  }
}

for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", redrawSmalls);
