// Drawings of numbers, on logarithmic axes.

const HEIGHT = 240;
const MARGIN = { left: 52, right: 14, top: 12, bottom: 36 };

// As wide as there is room, so that its letters are as large on a phone as elsewhere.
const room = () => Math.max(270, Math.min(540, document.documentElement.clientWidth - 64));

const STRIDES = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000];

const decade = (value) => Math.log10(value);

function axis(low, high, most = 6) {
  const step = Math.max(1, Math.ceil((high - low) / most));
  const ticks = [];
  for (let power = Math.ceil(low / step) * step; power <= high; power += step) ticks.push(power);
  return ticks;
}

function curveFigure({ steps, curve, twin_low: low, twin_high: high }) {
  const width = room();
  const positive = [...curve, ...low, ...high].filter((value) => value > 0 && value < 1e300);
  if (!positive.length) return null;
  const bottom = Math.floor(decade(Math.min(...positive))) - 1;
  const top = Math.max(Math.ceil(decade(Math.max(...positive))), bottom + 2);
  const last = Math.max(1, steps.at(-1));
  const x = (step) => MARGIN.left + (step / last) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => {
    const height = Math.min(top, value > 0 ? Math.max(bottom, decade(value)) : bottom);
    return MARGIN.top + ((top - height) / (top - bottom)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  };
  const points = (values) => values.map((value, place) => `${x(steps[place]).toFixed(1)},${y(value).toFixed(1)}`);
  const band = low.length ? svg("polygon", { class: "band", points: [...points(high), ...points(low).reverse()].join(" ") }) : null;
  const stride = STRIDES.find((each) => last / each <= 6) ?? Math.ceil(last / 5);
  const across = Array.from({ length: Math.floor(last / stride) + 1 }, (_, place) => place * stride);
  return svg("svg", { class: "figure", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": `Separation against steps: from ${written(curve[0])} to ${written(curve.at(-1))} after ${last} steps` },
    axis(bottom, top).map((power) => [
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(10 ** power), y2: y(10 ** power) }),
      svg("text", { x: MARGIN.left - 8, y: y(10 ** power) + 4, "text-anchor": "end" }, `10${superscript(power)}`)]),
    across.map((step) => svg("text", { x: x(step), y: HEIGHT - MARGIN.bottom + 16, "text-anchor": "middle" }, String(step))),
    svg("text", { x: (width + MARGIN.left) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, "step"),
    band, svg("polyline", { class: "line", points: points(curve).join(" ") }));
}

// Where a ratio lies beside the releases' own and the threshold.
function ratioScale(ratio, nullRatio) {
  const width = room();
  const marks = [
    { value: nullRatio, name: "own copies", kind: "null" },
    { value: DATA.threshold, name: "threshold", kind: "threshold" },
    { value: ratio, name: "this pair", kind: "pair" },
  ].filter((each) => typeof each.value === "number" && each.value > 0);
  if (!marks.some((each) => each.kind === "pair")) return null;
  const low = Math.min(0, ...marks.map((each) => Math.floor(decade(each.value))));
  const high = Math.max(5, ...marks.map((each) => Math.ceil(decade(each.value)))) + 1;
  const x = (value) => 12 + ((decade(value) - low) / (high - low)) * (width - 24);
  const beyond = x(DATA.threshold);
  return svg("svg", { class: "figure scale", viewBox: `0 0 ${width} 84`, role: "img",
    "aria-label": `Ratio ${written(ratio)}, of the releases' own copies ${written(nullRatio)}, threshold ${written(DATA.threshold)}` },
    svg("rect", { class: "zone", x: beyond, y: 30, width: width - 12 - beyond, height: 12 }),
    svg("line", { class: "grid", x1: 12, x2: width - 12, y1: 42, y2: 42 }),
    axis(low, high, width / 60).map((power) => svg("text", { x: x(10 ** power), y: 60, "text-anchor": "middle" }, `10${superscript(power)}`)),
    marks.map(({ value, name, kind }) => [
      svg("line", { class: kind, x1: x(value), x2: x(value), y1: { pair: 16, threshold: 30, null: 34 }[kind], y2: 46 }),
      svg("text", { class: `name ${kind}`, x: x(value), y: { pair: 12, threshold: 26, null: 77 }[kind], "text-anchor": anchor(x(value), width) }, name)]));
}

const anchor = (place, width) => (place < 40 ? "start" : place > width - 40 ? "end" : "middle");
