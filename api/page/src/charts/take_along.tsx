// Buttons that save what a chart shows: as a picture, and as numbers.
import { useRef } from "preact/hooks";
import { fileName, save } from "../parts/save";
import { standalone } from "./standalone";

type Cell = string | number | boolean | null | undefined;

/** The points of a chart; the names of columns hold their units. */
export interface Points {
  names: string[];
  rows: Cell[][];
}

/** An estimate's columns: value, interval, evidence. */
export function columnsOf(key: string): string[] {
  return [key, `${key}_low`, `${key}_high`, `${key}_evidence`];
}

/** Two small buttons inside the figure that they save. */
export function TakeAlong({ name, points }: { name: string; points: () => Points }) {
  const here = useRef<HTMLDivElement>(null);
  const picture = () => {
    const figure = here.current?.closest("figure");
    if (figure) save(fileName(name, "svg"), standalone(figure), "image/svg+xml");
  };
  const numbers = () => save(fileName(name, "csv"), csv(points()), "text/csv");
  return (
    <div class="take-along" ref={here}>
      <button type="button" onClick={picture} aria-label={`SVG: the picture of ${name}`}>
        SVG
      </button>
      <button type="button" onClick={numbers} aria-label={`CSV: the points of ${name}`}>
        CSV
      </button>
    </div>
  );
}

/** RFC 4180. */
function csv({ names, rows }: Points): string {
  const quoted = (cell: Cell) => {
    const text = cell === null || cell === undefined ? "" : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows].map((row) => `${row.map(quoted).join(",")}\n`).join("");
}
