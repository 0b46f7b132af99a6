// The frame of a chart: scales, ticks with their grid, and titles.
import { extent } from "d3-array";
import { type ScaleContinuousNumeric, scaleLinear, scaleLog } from "d3-scale";
import { useEffect, useState } from "preact/hooks";

export type Scale = ScaleContinuousNumeric<number, number>;

export interface Axis {
  title: string;
  tick: (value: number) => string;
  /** Instead of ticks at round values. */
  at?: readonly number[];
}

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export const FRAME: Frame = { width: 640, height: 400, left: 84, right: 16, top: 14, bottom: 46 };

/** Letters keep their size on a phone, so its drawings are narrower. */
const NARROW: Frame = { ...FRAME, width: 380, height: 330, left: 62, right: 12 };
const PHONE = "(max-width: 600px)";

/** The frame of a drawing in a window of this width. */
export function useFrame(): Frame {
  const [narrow, setNarrow] = useState(() => matchMedia(PHONE).matches);
  useEffect(() => {
    const query = matchMedia(PHONE);
    const look = () => setNarrow(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return narrow ? NARROW : FRAME;
}

/** A scale over values with some room at both ends, but none below a zero that nothing crosses. */
export function scaleOver(values: number[], range: [number, number], log = false): Scale {
  const usable = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  const [low = 1, high = 1] = extent(usable) as [number | undefined, number | undefined];
  if (log) {
    return scaleLog()
      .domain([low / 1.15, high * 1.15])
      .range(range);
  }
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return scaleLinear()
    .domain([low < 0 ? low - room : Math.max(low - room, 0), high + room])
    .range(range)
    .nice(6);
}

/** Some values to name; of a scale of powers those that begin with 1, 2 or 5. */
function ticks(scale: Scale, count: number): number[] {
  const all = scale.ticks(count);
  if (!("base" in scale)) return all;
  const [low = 1, high = 1] = scale.domain();
  if (high / low < 8) return evenly(low, high, count);
  const round = all.filter((value) => "125".includes(value.toExponential().charAt(0)));
  const powers = round.filter((value) => value.toExponential().startsWith("1"));
  return powers.length > 3 ? powers : round;
}

/** Round values over less than a power of ten. */
function evenly(low: number, high: number, count: number): number[] {
  return scaleLinear().domain([low, high]).ticks(count);
}

interface AxesProps {
  frame: Frame;
  x: Scale;
  y: Scale;
  xAxis: Axis;
  yAxis: Axis;
}

/** Both axes. */
export function Axes({ frame, x, y, xAxis, yAxis }: AxesProps) {
  const floor = frame.height - frame.bottom;
  return (
    <g class="axes" aria-hidden="true">
      {(xAxis.at ?? ticks(x, frame.width < 500 ? 4 : 6)).map((value) => (
        <g key={value} transform={`translate(${x(value)},0)`}>
          <line y1={frame.top} y2={floor} class="grid" />
          <text y={floor + 18} text-anchor="middle">
            {xAxis.tick(value)}
          </text>
        </g>
      ))}
      {(yAxis.at ?? ticks(y, 6)).map((value) => (
        <g key={value} transform={`translate(0,${y(value)})`}>
          <line x1={frame.left} x2={frame.width - frame.right} class="grid" />
          <text x={frame.left - 8} dy="0.32em" text-anchor="end">
            {yAxis.tick(value)}
          </text>
        </g>
      ))}
      <text
        x={(frame.left + frame.width - frame.right) / 2}
        y={frame.height - 8}
        text-anchor="middle"
        class="title"
      >
        {xAxis.title}
      </text>
      <text
        transform={`translate(14,${(frame.top + floor) / 2}) rotate(-90)`}
        text-anchor="middle"
        class="title"
      >
        {yAxis.title}
      </text>
    </g>
  );
}
