// The Pareto front: power against latency, with intervals, evidence by shape, and the bounds.
import { useState } from "preact/hooks";
import type { Answer, Configuration, Evidence, Row } from "../api/types";
import { Axes, FRAME, scaleOver } from "../charts/axes";
import { EvidenceLegend, marker } from "../charts/evidence";
import { columnsOf, type Points, TakeAlong } from "../charts/take_along";
import { amount, interval, quantity } from "../format";
import { describe } from "./configuration";
import { CAPACITY, ENERGY, estimate, MEAN, type Quantity, scopePower, TAIL } from "./quantities";

interface Point {
  row: Row;
  role: "front" | "recommended" | "today";
  x: number;
  y: number;
}

/** One chart of an answer, its axes chosen by the reader. */
export function FrontChart({ answer }: { answer: Answer }) {
  const across = [scopePower(answer), ENERGY];
  const first = answer.current ?? answer.recommended ?? answer.pareto[0];
  const upwards = [TAIL, MEAN, CAPACITY].filter((one) => first && estimate(first, one));
  const [xKey, setX] = useState<string>(across[0]?.key ?? "");
  const [yKey, setY] = useState<string>(TAIL.key);
  const xOf = across.find((one) => one.key === xKey) ?? scopePower(answer);
  const yOf = upwards.find((one) => one.key === yKey) ?? upwards[0] ?? CAPACITY;
  const points = pointsOf(answer, xOf, yOf);
  if (!points.length) return <p>No row has a number on both axes, so nothing is drawn.</p>;
  return (
    <figure class="chart">
      <div class="chart-controls">
        <Choice label="Across" choices={across} value={xOf.key} onChange={setX} />
        <Choice label="Upwards" choices={upwards} value={yOf.key} onChange={setY} />
        <TakeAlong
          name={`the Pareto front of ${answer.workload}`}
          points={() => table(points, [xOf, yOf, CAPACITY])}
        />
      </div>
      <Drawing answer={answer} points={points} xOf={xOf} yOf={yOf} />
      <figcaption>
        <ul class="legend">
          <li class="recommended">
            <span class="swatch" /> recommended
          </li>
          <li class="today">
            <span class="swatch" /> today
          </li>
          <li class="front">
            <span class="swatch" /> on the Pareto front
          </li>
        </ul>
        <EvidenceLegend kinds={points.map((point) => evidenceOf(point.row, xOf))} />
      </figcaption>
    </figure>
  );
}

function Choice(props: {
  label: string;
  choices: Quantity[];
  value: string;
  onChange: (key: string) => void;
}) {
  return (
    <label>
      {props.label}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.choices.map((one) => (
          <option key={one.key} value={one.key}>
            {one.title}
          </option>
        ))}
      </select>
    </label>
  );
}

function evidenceOf(row: Row, quantity: Quantity): Evidence {
  return estimate(row, quantity)?.evidence ?? "extrapolated";
}

function pointsOf(answer: Answer, xOf: Quantity, yOf: Quantity): Point[] {
  const rows: [Row, Point["role"]][] = answer.pareto.map((row) => [row, "front"]);
  if (answer.current) rows.push([answer.current, "today"]);
  if (answer.recommended) rows.push([answer.recommended, "recommended"]);
  return rows.flatMap(([row, role]) => {
    const x = estimate(row, xOf);
    const y = estimate(row, yOf);
    const point = { row, role, x: amount(x?.value ?? 0), y: amount(y?.value ?? 0) };
    return x && y && Number.isFinite(point.x) && Number.isFinite(point.y) ? [point] : [];
  });
}

/** What is drawn, as numbers. */
function table(points: Point[], shown: Quantity[]): Points {
  const quantities = shown.filter((one, at) => shown.indexOf(one) === at);
  const settings = Object.keys(points[0]?.row.configuration ?? {}) as (keyof Configuration)[];
  return {
    names: ["role", ...settings, ...quantities.flatMap((one) => columnsOf(one.key))],
    rows: points.map(({ row, role }) => [
      role,
      ...settings.map((name) => row.configuration[name]),
      ...quantities.flatMap((one) => {
        const found = estimate(row, one);
        return [found?.value, found?.low, found?.high, found?.evidence];
      }),
    ]),
  };
}

function limitOf(answer: Answer, yOf: Quantity): number | null {
  const name = `${yOf.key}_max` as keyof Answer["sla"];
  const limit = answer.sla[name];
  return typeof limit === "number" ? limit : null;
}

interface DrawingProps {
  answer: Answer;
  points: Point[];
  xOf: Quantity;
  yOf: Quantity;
}

function Drawing({ answer, points, xOf, yOf }: DrawingProps) {
  const [shown, setShown] = useState<Point | null>(null);
  const frame = FRAME;
  const limit = limitOf(answer, yOf);
  const ends = (of: Quantity) =>
    points.flatMap(({ row }) => {
      const found = estimate(row, of);
      return found ? [found.low, found.high].map(amount).filter(Number.isFinite) : [];
    });
  const x = scaleOver(ends(xOf), [frame.left, frame.width - frame.right]);
  const y = scaleOver(
    limit ? [...ends(yOf), limit] : ends(yOf),
    [frame.height - frame.bottom, frame.top],
    yOf.log,
  );
  return (
    <>
      <svg
        viewBox={`0 0 ${frame.width} ${frame.height}`}
        class="plot"
        role="group"
        aria-label={`Pareto front: ${xOf.title} across, ${yOf.title} upwards; the table below holds the same`}
      >
        <Axes
          frame={frame}
          x={x}
          y={y}
          xAxis={{ title: `${xOf.title} [${xOf.unit}]`, tick: (value) => String(value) }}
          yAxis={{ title: yOf.title, tick: (value) => quantity(value, yOf.unit) }}
        />
        {limit !== null && (
          <g class="limit">
            <line x1={frame.left} x2={frame.width - frame.right} y1={y(limit)} y2={y(limit)} />
            <text x={frame.width - frame.right - 4} y={y(limit) - 5} text-anchor="end">
              SLA {quantity(limit, yOf.unit)}
            </text>
          </g>
        )}
        {labelled(points, xOf, yOf, (one) => [x(one.x), y(one.y)]).map(([point, text]) => {
          const right = x(point.x) > frame.width * 0.7;
          return (
            <text
              key={text}
              class={`label ${point.role}`}
              x={x(point.x) + (right ? -10 : 10)}
              y={y(point.y) - 10}
              text-anchor={right ? "end" : "start"}
            >
              {text}
            </text>
          );
        })}
        {points.map((point) => {
          const bars = [estimate(point.row, xOf), estimate(point.row, yOf)] as const;
          const name = `${point.role === "front" ? "" : `${point.role}: `}${describe(point.row.configuration)}: ${quantity(point.x, xOf.unit)}, ${quantity(point.y, yOf.unit)}`;
          return (
            <g
              key={`${point.role} ${JSON.stringify(point.row.configuration)}`}
              class={`point ${point.role}`}
              role="img"
              aria-label={name}
              tabIndex={0}
              onFocus={() => setShown(point)}
              onMouseEnter={() => setShown(point)}
              onBlur={() => setShown(null)}
              onMouseLeave={() => setShown(null)}
            >
              {bars[0] && (
                <line
                  x1={x(amount(bars[0].low))}
                  x2={x(inside(x, bars[0].high))}
                  y1={y(point.y)}
                  y2={y(point.y)}
                  class="bar"
                />
              )}
              {bars[1] && (
                <line
                  x1={x(point.x)}
                  x2={x(point.x)}
                  y1={y(amount(bars[1].low))}
                  y2={y(inside(y, bars[1].high))}
                  class="bar"
                />
              )}
              <path
                d={marker(evidenceOf(point.row, xOf), point.role === "front" ? 60 : 130)}
                class="marker"
                transform={`translate(${x(point.x)},${y(point.y)})`}
              />
            </g>
          );
        })}
      </svg>
      <p class="readout" aria-live="polite">
        {shown
          ? readout(shown, xOf, yOf)
          : "Point at a marker, or step to it with the Tab key, for its settings and intervals."}
      </p>
    </>
  );
}

/** Least distance of two labels, across and upwards, in units of the drawing. */
const APART = [150, 18] as const;

/** The few points that are named in the drawing; a name that would cover another is left out. */
function labelled(
  points: Point[],
  xOf: Quantity,
  yOf: Quantity,
  at: (point: Point) => [number, number],
): [Point, string][] {
  const least = (of: "x" | "y") =>
    points.reduce<Point | null>((best, one) => (best && best[of] <= one[of] ? best : one), null);
  const wanted: [Point | null | undefined, string][] = [
    [points.find((one) => one.role === "recommended"), "recommended"],
    [points.find((one) => one.role === "today"), "today"],
    [least("x"), `least ${xOf.title}`],
    [yOf === CAPACITY ? null : least("y"), `least ${yOf.title}`],
  ];
  const taken: [number, number][] = [];
  return wanted.flatMap(([point, text]) => {
    if (!point) return [];
    const [x, y] = at(point);
    if (taken.some((one) => Math.abs(one[0] - x) < APART[0] && Math.abs(one[1] - y) < APART[1]))
      return [];
    taken.push([x, y]);
    return [[point, text] as [Point, string]];
  });
}

/** An end of an interval; what nothing bounds ends at the edge of the drawing. */
function inside(scale: { domain(): number[] }, end: number | "unbounded"): number {
  return end === "unbounded" ? Math.max(...scale.domain()) : end;
}

function readout(point: Point, xOf: Quantity, yOf: Quantity): string {
  const x = estimate(point.row, xOf);
  const y = estimate(point.row, yOf);
  if (!x || !y) return "";
  return `${describe(point.row.configuration)}: ${quantity(x.value, xOf.unit)} (${interval(x, xOf.unit)}), ${quantity(y.value, yOf.unit)} (${interval(y, yOf.unit)})`;
}
