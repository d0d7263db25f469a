// Everything that is known of one pair of releases on one environment.

async function fillPair(panel, environment, older, newer) {
  const matrix = environment.matrix;
  const cells = [environment.cells[older], environment.cells[newer]];
  const sign = signOf(environment, ...cells);
  const [shared, own] = await Promise.all([details(`details-${matrix.place}`), details(`details-${matrix.place}-${environment.place}`)]);
  const pair = own.pairs[`${Math.min(...cells)}-${Math.max(...cells)}`];
  const why = own.explanations[`${cells[0]}-${cells[1]}`];
  const parts = [
    heading(environment, older, newer, sign),
    chooser(environment, older, newer),
    reasons(environment, older, newer, sign, pair),
    met(environment, older, newer),
    evidence(environment, cells, sign, pair),
    pair && outputs(pair),
    pair?.growth && growth(pair.growth),
    explanation(environment, older, newer, sign, why),
    packages(environment, older, newer, shared),
    reproducer(environment, older, newer, sign, why),
  ];
  panel.replaceChildren(...parts.filter(Boolean));
  panel.dataset.shown = address(matrix, environment, older, newer);
}

function heading(environment, older, newer, sign) {
  const { releases } = environment.matrix;
  return el("header", { class: "pair-head" },
    el("p", { class: "quiet" }, environment.name),
    el("h3", { id: "pair-title", tabindex: -1 }, `${releases[older].name} → ${releases[newer].name}`),
    el("p", { class: "pair-verdict" }, mark(sign, "large"), el("strong", {}, VERDICTS[sign].word), el("span", { class: "quiet" }, VERDICTS[sign].meaning)),
    el("p", {}, el("a", { href: address(environment.matrix, environment, older, newer), class: "permalink" }, "Link to this pair")));
}

function chooser(environment, older, newer) {
  const { matrix } = environment;
  const choice = (name, chosen, other, first) => {
    const select = el("select", { id: `choose-${name}` }, matrix.releases.map((release, place) =>
      el("option", { value: place, selected: place === chosen, disabled: place === other }, release.name)));
    select.addEventListener("change", () => {
      const ends = first ? [Number(select.value), newer] : [older, Number(select.value)];
      location.hash = address(matrix, environment, Math.min(...ends), Math.max(...ends));
    });
    return el("label", {}, el("span", {}, name), select);
  };
  return el("div", { class: "chooser" }, choice("older", older, newer, true), choice("newer", newer, older, false));
}

function reasons(environment, older, newer, sign, pair) {
  const { releases } = environment.matrix;
  const missing = [older, newer].filter((place) => environment.cells[place] < 0).map((place) => {
    const { status, reason } = environment.missing[-1 - environment.cells[place]];
    return el("p", {}, el("strong", {}, `${releases[place].name}: `), `${status}${reason ? `: ${reason}` : ""}`);
  });
  if (missing.length) return el("div", { class: "reason" }, missing);
  if (pair) return el("p", { class: "reason" }, pair.reason);
  if (sign === "=") return el("p", { class: "reason" }, "Everything recorded is the same to the last bit.");
  const left = DATA.leftOut ? `The evidence is in the database; this file leaves out ${DATA.leftOut}.` : "The matrix does not compare these two.";
  return el("p", { class: "reason" }, left);
}

// The night that met a change first, and what was said of it since.
function met(environment, older, newer) {
  const { releases, nights } = environment.matrix;
  const same = (each) => each.environment === environment.name && each.older === releases[older].name && each.newer === releases[newer].name;
  const found = nights.flatMap((night) => night.changes.filter(same).map((change) => ({ night: night.night, ...change })));
  if (!found.length) return null;
  const { waiver } = found[0];
  return el("p", { class: "quiet" }, `First met on the night of ${found.at(-1).night}`, waiver && `; accepted: ${waiver}`, ".");
}

function row(name, ...value) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, ...value));
}

function evidence(environment, cells, sign, pair) {
  if (cells.some((cell) => cell < 0)) return null;
  const nulls = cells.map((cell) => environment.null_ratios[cell]).filter((value) => typeof value === "number");
  const nullRatio = nulls.length ? Math.max(...nulls) : null;
  const same = sign === "=" && !pair;
  // What a reset does is no step: where only that changed, its own numbers are the evidence.
  const reset = sign === "✗" && pair?.beyond === 0 && pair.outputs.find((each) => each.output === "reset" && !each.same_bits);
  const decisive = reset || pair;
  return el("section", { class: "evidence" }, el("h4", {}, "Evidence"),
    pair && ratioScale(decisive.ratio, nullRatio),
    el("dl", { class: "facts" },
      (pair || same) && row(reset ? "Ratio of the reset" : "Ratio", number(same ? 0 : decisive.ratio), el("small", {}, `changed from ${written(DATA.threshold)} on`)),
      row("Null ratio", number(nullRatio), el("small", {}, "the releases against their own nudged copies")),
      reset && row("Seeds beyond", number(reset.beyond)),
      reset && row("Apart after the reset", number(reset.separation)),
      pair && row("States beyond", number(pair.beyond), pair.forced !== null && [" of ", number(pair.forced)]),
      pair?.changed && row("Outputs", pair.changed),
      pair && row("Apart after one step", number(pair.separation), pair.ulps !== null && el("small", {}, `${written(pair.ulps)} last places`)),
      pair && row("Apart over trajectories", number(pair.horizon)),
      pair?.paper && row("By the paper's rule", pair.paper),
      row("Read from", { forced: "forced steps", replayed: "replayed episodes", table: "the table of transitions" }[environment.evidence] ?? environment.evidence),
      environment.coverage && row("Exercised", environment.coverage),
      environment.controls && row("Controls", environment.controls)));
}

function table(titles, rows, caption) {
  return el("div", { class: "scroll" }, el("table", { class: "plain" }, caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, titles.map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, place) => (place ? el("td", {}, cell) : el("th", { scope: "row" }, cell))))))));
}

function outputs(pair) {
  if (!pair.outputs.length) return null;
  const rows = pair.outputs.map((each) => [each.output, each.same_bits ? "same bits" : number(each.ratio),
    each.same_bits ? "" : number(each.beyond), each.same_bits ? "" : number(each.separation), each.same_bits ? "" : number(each.horizon),
    each.interface]);
  const interfaces = rows.some((cells) => cells[5]);
  const titles = ["output", "ratio", "beyond", "one step", "trajectory", "interface"];
  return el("section", {}, el("h4", {}, "Output by output"),
    table(titles.slice(0, interfaces ? 6 : 5), rows.map((cells) => cells.slice(0, interfaces ? 6 : 5))));
}

function growth(each) {
  return el("section", {}, el("h4", {}, "How trajectories part"),
    curveFigure(each),
    each.twin_low.length > 0 && el("p", { class: "quiet key" }, el("span", {}, el("span", { class: "swatch line" }), "this pair"),
      el("span", {}, el("span", { class: "swatch band" }), "a release and its own twins, started one last place away")),
    el("p", {}, el("strong", {}, each.certificate === "holds" ? "Certificate holds: " : "Unexplained: "), each.reason),
    el("dl", { class: "facts" }, row("Steps per decade", number(each.steps_per_decade)),
      row("Twins, fastest to slowest", number(each.twin_fastest), " to ", number(each.twin_slowest))));
}

function explanation(environment, older, newer, sign, why) {
  if (!why || (sign !== "✗" && !why.stage)) return null;
  const told = [
    why.stage && row("First differs in", el("strong", {}, why.stage), why.fields && `: ${why.fields}`,
      el("small", {}, counted(why.states, "state"), typeof why.ratio === "number" && `, ratio up to ${written(why.ratio)}`)),
    why.before.length > 0 && row("The same before", why.before.join(", ")),
    why.interface && row("Interface", why.interface),
    why.constants.length > 0 && row("Constants that differ", el("ul", {}, why.constants.map((each) => el("li", {}, el("code", {}, each)))),
      why.more_constants > 0 && `and ${why.more_constants} more`),
    why.laws && row("Laws", why.laws),
    why.left_open && row("Not looked into", why.left_open),
  ].filter(Boolean);
  if (!told.length && !why.stages.length) return null;
  return el("section", {}, el("h4", {}, "Why"), el("dl", { class: "facts" }, told),
    why.stages.length > 0 && el("details", {}, el("summary", {}, `${counted(why.stages.length, "quantity", "quantities")} within the step, in the order of computation`),
      table(["stage", "quantity", "states", "ratio"], why.stages.map(([stage, field, states, ratio]) => [stage, el("code", {}, field), number(states), number(ratio)]))));
}

function packages(environment, older, newer, { locks, blames }) {
  const [one, other] = [older, newer].map((place) => environment.matrix.releases[place].lock);
  if (one < 0 || other < 0) return null;
  const asked = environment.matrix.releases[newer].requires;
  const names = [...new Set([...Object.keys(locks[one]), ...Object.keys(locks[other])])].sort()
    .sort((first, second) => asked.includes(second) - asked.includes(first)); // what was asked for comes first
  const moves = names.filter((name) => locks[one][name] !== locks[other][name])
    .map((name) => `${name} ${locks[one][name] ?? "none"} → ${locks[other][name] ?? "none"}`);
  const blame = blames.find((each) => each.environment === environment.name && each.older === older && each.newer === newer);
  return el("section", {}, el("h4", {}, "Packages"), el("dl", { class: "facts" },
    blame && row("Brought by", el("strong", {}, blame.blamed.join(", "))),
    row(blame ? "All that differ" : moves.length === 1 ? "What differs" : "One or more of", moves.length ? el("ul", {}, moves.map((move) => el("li", {}, move))) : "nothing that is installed differs")));
}

const quoted = (text) => (/^[\w.@%+=:,/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function reproducer(environment, older, newer, sign, why) {
  if (sign !== "✗") return null;
  const names = [older, newer].map((place) => environment.matrix.releases[place].name);
  const explain = ["release-audit", "explain", "--matrix", environment.matrix.name, environment.name, ...names].map(quoted).join(" ");
  return el("section", {}, el("h4", {}, "To show it"),
    why?.script
      ? [el("p", {}, "A script that takes the step at either version, beside the database: ", el("code", {}, why.script)), why.commands.length > 0 && command(...why.commands)]
      : el("p", {}, "There is no script for this pair yet. This looks into it and writes one where it can:"),
    !why?.script && command(explain));
}

function command(...lines) {
  const text = lines.join("\n");
  const button = el("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text);
    button.textContent = "Copied";
  });
  return el("div", { class: "command" }, el("pre", { tabindex: 0 }, text), button);
}
