// Evidence by the shape of a marker, so that nobody needs to tell colours apart.
import {
  type SymbolType,
  symbol,
  symbolCircle,
  symbolCross,
  symbolDiamond,
  symbolSquare,
  symbolStar,
  symbolTriangle,
  symbolWye,
} from "d3-shape";
import type { Evidence } from "../api/types";

const SHAPES: Record<Evidence, SymbolType> = {
  measured: symbolCircle,
  interpolated: symbolDiamond,
  extrapolated: symbolTriangle,
  simulated: symbolSquare,
  published: symbolStar,
  datasheet: symbolCross,
  assumed: symbolWye,
};

const MEANINGS: Record<Evidence, string> = {
  measured: "at this configuration",
  interpolated: "between measurements",
  extrapolated: "beyond measurements",
  simulated: "from the simulator",
  published: "from a publication",
  datasheet: "from a data sheet",
  assumed: "without a source",
};

/** The outline of a marker of so many square pixels. */
export function marker(evidence: Evidence, area = 64): string {
  return symbol(SHAPES[evidence], area)() ?? "";
}

/** Whether the value rests on measurements of this drive at or around this configuration. */
export function isMeasured(evidence: Evidence): boolean {
  return evidence === "measured" || evidence === "interpolated";
}

/** What each shape stands for, of the kinds that are there. */
export function EvidenceLegend({ kinds }: { kinds: Evidence[] }) {
  const shown = (Object.keys(SHAPES) as Evidence[]).filter((kind) => kinds.includes(kind));
  return (
    <ul class="legend" aria-label="Evidence by shape of the marker">
      {shown.map((kind) => (
        <li key={kind}>
          <svg width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
            <path d={marker(kind, 48)} class={isMeasured(kind) ? "marker" : "marker outlined"} />
          </svg>
          {kind}: {MEANINGS[kind]}
        </li>
      ))}
    </ul>
  );
}
