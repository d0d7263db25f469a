// Elements and numbers. Everything that came from a package becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

const el = (tag, properties = {}, ...children) => filled(document.createElement(tag), properties, children);
const svg = (tag, properties = {}, ...children) => filled(document.createElementNS(SVG, tag), properties, children);

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(power) {
  const digits = [...String(Math.abs(power))].map((digit) => SUPERSCRIPTS[digit]).join("");
  return (power < 0 ? "⁻" : "") + digits;
}

// Three digits for people; numbers that JSON cannot hold arrive as text.
function written(value) {
  if (value === null || value === undefined) return "not measured";
  if (typeof value === "string") return { inf: "∞", "-inf": "−∞", nan: "not a number" }[value] ?? value;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return value.toLocaleString("en");
  if (size >= 0.01 && size < 1e5) return String(Number(value.toPrecision(3)));
  const [digits, power] = value.toExponential(2).split("e");
  return `${digits} × 10${superscript(Number(power))}`;
}

// A number as people read it, with the store's own digits for whoever copies it.
const number = (value) => el("data", { value: value ?? "", title: value ?? "" }, written(value));

const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

function listed(names, most = Infinity) {
  const shown = names.slice(0, most);
  if (names.length > most) return `${shown.join(", ")} and ${names.length - most} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : (shown[0] ?? "");
}

// The first of many, and a button for the rest.
function shortened(items, most) {
  if (items.length <= most) return items;
  const rest = items.slice(most);
  const button = el("button", { type: "button", class: "more" }, `Show ${rest.length.toLocaleString("en")} more`);
  const tag = { TR: "tr", LI: "li" }[items[0].tagName] ?? "span";
  const holder = el(tag, { class: "more-row" }, tag === "tr" ? el("td", { colspan: 9 }, button) : button);
  button.addEventListener("click", () => holder.replaceWith(...rest));
  return [...items.slice(0, most), holder];
}
