// The Pareto front: power against latency, with intervals, evidence by shape, and the bounds.
import { curveStepAfter, line } from "d3-shape";
import { useState } from "preact/hooks";
import type { Answer, Configuration, Evidence, Row } from "../api/types";
import { Axes, type Frame, type Scale, scaleOver, useFrame } from "../charts/axes";
import { EvidenceLegend, isMeasured, marker } from "../charts/evidence";
import { columnsOf, type Points, TakeAlong } from "../charts/take_along";
import { amount, interval, quantity } from "../format";
import { Table } from "../parts/table";
import { contrast, describe } from "./configuration";
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
    <figure class="chart" id="front">
      <div class="chart-controls">
        <Choice label="Across" choices={across} value={xOf.key} onChange={setX} />
        <Choice label="Upwards" choices={upwards} value={yOf.key} onChange={setY} />
        <TakeAlong
          name={`the Pareto front of ${answer.workload}`}
          points={() => table(points, [xOf, yOf, CAPACITY])}
        />
      </div>
      <div class="beside">
        <div>
          <Drawing answer={answer} points={points} xOf={xOf} yOf={yOf} />
        </div>
        <KeyTable points={points} xOf={xOf} yOf={yOf} />
      </div>
      <figcaption>
        <ul class="legend">
          <li class="recommended">
            <span class="swatch" /> recommended
          </li>
          <li class="today">
            <span class="swatch" /> today
          </li>
          <li class="front">
            <span class="swatch" /> not dominated: no candidate is better in everything
          </li>
        </ul>
        <EvidenceLegend kinds={points.map((point) => evidenceOf(point.row, xOf))} />
        <p class="hint">
          Filled: rests on measurements. Outlined: does not. Line: least{" "}
          {yOf === CAPACITY ? "power for the most capacity" : `${yOf.title} for the power`}. Bars:
          90 % intervals.
        </p>
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
  const frame = useFrame();
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
        <path class="front-line" d={edge(points, xOf, yOf, x, y)} />
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
                d={marker(evidenceOf(point.row, xOf), point.role === "front" ? 44 : 150)}
                class={isMeasured(evidenceOf(point.row, xOf)) ? "marker" : "marker outlined"}
                transform={`translate(${x(point.x)},${y(point.y)})`}
              />
            </g>
          );
        })}
        {labels(points, keys(points, xOf, yOf), frame, (one) => [x(one.x), y(one.y)]).map((one) => (
          <text
            key={one.text}
            class={`label ${one.role}`}
            x={one.x}
            y={one.y}
            text-anchor={one.anchor}
          >
            {one.text}
          </text>
        ))}
      </svg>
      <p class="readout" aria-live="polite">
        {shown
          ? readout(shown, xOf, yOf)
          : "Point at a marker, or step to it with the Tab key, for its settings and intervals."}
      </p>
    </>
  );
}

/** The few points that matter, with their names. */
function keys(points: Point[], xOf: Quantity, yOf: Quantity): [Point, string][] {
  const least = (of: "x" | "y") =>
    points.reduce<Point | null>((best, one) => (best && best[of] <= one[of] ? best : one), null);
  const named = new Map<string, [Point, string]>();
  const wanted: [Point | null | undefined, string][] = [
    [points.find((one) => one.role === "recommended"), "recommended"],
    [points.find((one) => one.role === "today"), "today"],
    [least("x"), `least ${xOf.title.split(" of ")[0]}`],
    [yOf === CAPACITY ? null : least("y"), `least ${yOf.title}`],
  ];
  for (const [point, text] of wanted) {
    if (!point) continue;
    const same = JSON.stringify(point.row.configuration);
    if (!named.has(same)) named.set(same, [point, text]);
  }
  return [...named.values()];
}

/** The points that are best in both shown quantities, as steps. */
function edge(points: Point[], xOf: Quantity, yOf: Quantity, x: Scale, y: Scale): string {
  const better = (one: number, than: number) => (yOf === CAPACITY ? one > than : one < than);
  const best: Point[] = [];
  for (const point of [...points].sort((one, other) => one.x - other.x)) {
    const last = best.at(-1);
    if (point.role !== "today" && (!last || better(point.y, last.y))) best.push(point);
  }
  const steps = line<Point>()
    .x((one) => x(one.x))
    .y((one) => y(one.y))
    .curve(curveStepAfter);
  return xOf === ENERGY || best.length > 1 ? (steps(best) ?? "") : "";
}

interface Label {
  text: string;
  role: Point["role"];
  x: number;
  y: number;
  anchor: "start" | "end";
}

const LETTER = 7;
const LINE = 16;

/** A label beside each key point, where it covers the fewest markers and no other label. */
function labels(
  points: Point[],
  named: [Point, string][],
  frame: Frame,
  at: (point: Point) => [number, number],
): Label[] {
  const marks = points.map(at);
  const taken: [number, number, number, number][] = [];
  return named.map(([point, text]) => {
    const [px, py] = at(point);
    const wide = LETTER * text.length;
    const places = [-14, 22, -34, 42].flatMap((down) =>
      [0, 1].map((left) => {
        const from = left ? px - 10 - wide : px + 10;
        const box: [number, number, number, number] = [
          from,
          py + down - LINE,
          from + wide,
          py + down,
        ];
        const inBox = ([mx, my]: [number, number]) =>
          mx > box[0] - 6 && mx < box[2] + 6 && my > box[1] - 4 && my < box[3] + 6;
        const apart = (one: typeof box) =>
          one[2] < box[0] || one[0] > box[2] || one[3] < box[1] || one[1] > box[3];
        const outside =
          from < frame.left ||
          from + wide > frame.width ||
          box[1] < frame.top ||
          box[3] > frame.height - frame.bottom;
        const cost =
          marks.filter(inBox).length +
          50 * taken.filter((one) => !apart(one)).length +
          (outside ? 100 : 0);
        return { box, cost, anchor: left ? ("end" as const) : ("start" as const), down };
      }),
    );
    const best = places.reduce((one, other) => (other.cost < one.cost ? other : one));
    taken.push(best.box);
    return {
      text,
      role: point.role,
      x: best.anchor === "end" ? px - 10 : px + 10,
      y: py + best.down - 3,
      anchor: best.anchor,
    };
  });
}

/** The labelled points with their intervals, beside the drawing. */
function KeyTable({ points, xOf, yOf }: { points: Point[]; xOf: Quantity; yOf: Quantity }) {
  const named = keys(points, xOf, yOf);
  const settings = contrast(named.map(([point]) => point.row.configuration));
  return (
    <div class="keys">
      <Table heads={["Point", xOf.title, yOf.title]}>
        {named.map(([point, text], index) => (
          <tr key={text}>
            <th scope="row">
              <span class={point.role}>{text}</span> <small>{settings[index]}</small>
            </th>
            {[xOf, yOf].map((one) => {
              const found = estimate(point.row, one);
              return (
                <td key={one.key}>
                  {found && quantity(found.value, one.unit)}{" "}
                  <small>{found && interval(found, one.unit)}</small>
                </td>
              );
            })}
          </tr>
        ))}
      </Table>
    </div>
  );
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
