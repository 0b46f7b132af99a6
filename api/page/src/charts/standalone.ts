// A chart as a file of its own: an SVG that holds its styles, in light colours, with its legend.

const SVG = "http://www.w3.org/2000/svg";
const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity"];
const LETTER = 7;
const ROW = 22;

/** The text of an SVG file with what is drawn in a figure. */
export function standalone(figure: Element): string {
  const place = document.createElement("div");
  place.className = "light offscreen";
  const copy = figure.cloneNode(true) as Element;
  place.append(copy);
  document.body.append(place);
  try {
    const plot = copy.querySelector("svg.plot") as SVGSVGElement;
    const legend = legendOf(copy, plot);
    const named = plot.getAttribute("aria-label") ?? "";
    for (const element of plot.querySelectorAll("*")) paint(element);
    for (const element of [plot, ...plot.querySelectorAll("*")]) plain(element);
    frame(plot, legend);
    plot.prepend(made("title", {}, named));
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(plot)}\n`;
  } finally {
    place.remove();
  }
}

/** Write on an element what the page's style says of it. */
function paint(element: Element): void {
  const style = getComputedStyle(element);
  const names = element.tagName === "text" ? ["fill", "font-size"] : PAINT;
  if (element.tagName === "g" || element.tagName === "title") return;
  for (const name of names) element.setAttribute(name, style.getPropertyValue(name));
}

/** Take away what only the page needs; what a screen reader is told becomes a title. */
function plain(element: Element): void {
  const says = element.getAttribute("aria-label");
  if (says && element.tagName === "g") element.prepend(made("title", {}, says));
  for (const name of ["class", "tabindex", "role", "aria-label", "aria-hidden"]) {
    element.removeAttribute(name);
  }
}

/** The figure's legend, drawn. */
function legendOf(figure: Element, plot: SVGSVGElement): SVGGElement {
  const all = made("g", {}) as SVGGElement;
  const { width, height } = plot.viewBox.baseVal;
  let [x, y] = [14, height + ROW / 2];
  for (const item of figure.querySelectorAll(".legend li")) {
    const says = item.textContent?.trim() ?? "";
    const wide = 40 + LETTER * says.length;
    if (x + wide > width) [x, y] = [14, y + ROW];
    const entry = made("g", { transform: `translate(${x},${y})` });
    const outline = item.querySelector("path")?.getAttribute("d");
    const fill = getComputedStyle(item).color;
    entry.append(outline ? made("path", { d: outline, fill }) : made("circle", { r: "5", fill }));
    entry.append(made("text", { x: "12", dy: "0.32em", "font-size": "12", fill }, says));
    all.append(entry);
    x += wide;
  }
  all.dataset.height = all.childElementCount ? String(y + ROW / 2 - height) : "0";
  return all;
}

/** Size, font and paper, so that it looks alike wherever it is opened. */
function frame(plot: SVGSVGElement, legend: SVGGElement): void {
  const { width, height } = plot.viewBox.baseVal;
  const whole = height + Number(legend.dataset.height);
  delete legend.dataset.height;
  const size = { width: String(width), height: String(whole) };
  for (const [name, value] of Object.entries(size)) plot.setAttribute(name, value);
  plot.setAttribute("viewBox", `0 0 ${width} ${whole}`);
  plot.setAttribute("font-family", "system-ui, Helvetica, Arial, sans-serif");
  plot.prepend(made("rect", { ...size, fill: "#ffffff" }));
  plot.append(legend);
}

function made(tag: string, attributes: Record<string, string>, text = ""): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}
