// Throughput by queue depth, a line for each request size, with intervals as bands.
import { area, line } from "d3-shape";
import { useEffect, useState } from "preact/hooks";
import { explain, isSuperseded, post } from "../api/client";
import type { Prediction } from "../api/types";
import { FRAME, scaleOver } from "../charts/axes";
import { Plot } from "../charts/plot";
import { columnsOf, type Points, TakeAlong } from "../charts/take_along";
import { quantity, size } from "../format";
import { Select } from "../parts/field";
import { Trouble } from "../parts/loading";

const DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const SIZES = [4096, 16384, 65536, 262144];
const WORK = [
  ["read", "random reads"],
  ["write", "random writes"],
] as const;

interface Curve {
  bytes: number;
  points: Prediction[];
}

/** The saturation curves that the profile predicts. */
export function SaturationChart({ device }: { device: string }) {
  const [operation, setOperation] = useState("read");
  const [curves, setCurves] = useState<Curve[]>([]);
  const [trouble, setTrouble] = useState<string | null>(null);
  useEffect(() => {
    const control = new AbortController();
    const configurations = SIZES.flatMap((request_bytes) =>
      DEPTHS.map((queue_depth) => ({ operation, pattern: "random", request_bytes, queue_depth })),
    );
    post<{ predictions: Prediction[] }>("/predict", { device, configurations }, control.signal)
      .then(({ predictions }) => {
        setTrouble(null);
        setCurves(
          SIZES.map((bytes, index) => ({
            bytes,
            points: predictions.slice(index * DEPTHS.length, (index + 1) * DEPTHS.length),
          })),
        );
      })
      .catch((error: unknown) => {
        if (!isSuperseded(error)) setTrouble(explain(error));
      });
    return () => control.abort();
  }, [device, operation]);
  return (
    <section aria-labelledby="saturation">
      <h2 id="saturation">Throughput by queue depth</h2>
      <Select label="Of" value={operation} choices={WORK} onChange={setOperation} />
      {trouble && <Trouble text={trouble} />}
      {curves.length > 0 && (
        <figure class="chart">
          <TakeAlong
            name={`the saturation of ${operation}s by ${device}`}
            points={() => table(curves)}
          />
          <Drawing curves={curves} />
        </figure>
      )}
    </section>
  );
}

/** What nobody can bound is not drawn. */
const drawn = (end: number | "unbounded" | null | undefined) =>
  typeof end === "number" ? end : Number.NaN;
const value = (one: Prediction) => drawn(one.throughput_bytes_per_second);
const low = (one: Prediction) => drawn(one.throughput_bytes_per_second_low);
const high = (one: Prediction) => drawn(one.throughput_bytes_per_second_high);

const RATE = "throughput_bytes_per_second";

function table(curves: Curve[]): Points {
  return {
    names: ["operation", "pattern", "request_bytes", "queue_depth", ...columnsOf(RATE)],
    rows: curves
      .flatMap((curve) => curve.points)
      .map((one) => [
        ...[one.operation, one.pattern, one.request_bytes, one.queue_depth],
        ...[one[RATE], one[`${RATE}_low`], one[`${RATE}_high`]],
        one.evidence_by_quantity[RATE] ?? one.evidence,
      ]),
  };
}

function Drawing({ curves }: { curves: Curve[] }) {
  const frame = { ...FRAME, right: 76 };
  const all = curves.flatMap((curve) => curve.points);
  const x = scaleOver(DEPTHS, [frame.left, frame.width - frame.right], true);
  const y = scaleOver(
    [...all.map(low), ...all.map(high)],
    [frame.height - frame.bottom, frame.top],
    true,
  );
  const at = (one: Prediction) => x(one.queue_depth ?? 1);
  const band = area<Prediction>()
    .x(at)
    .y0((one) => y(low(one)))
    .y1((one) => y(high(one)));
  const middle = line<Prediction>()
    .x(at)
    .y((one) => y(value(one)));
  const named = spread(curves.map((curve) => y(value(curve.points.at(-1) as Prediction))));
  return (
    <Plot
      frame={frame}
      x={x}
      y={y}
      xAxis={{ title: "queue depth", tick: String, at: DEPTHS }}
      yAxis={{ title: "throughput", tick: (rate) => quantity(rate, "B/s") }}
      says="Predicted throughput by queue depth for four request sizes, with 90 % bands"
    >
      {curves.map((curve, index) => {
        const last = curve.points.at(-1);
        return (
          <g key={curve.bytes} class={`series-${index}`}>
            <path d={band(curve.points) ?? ""} class="band" />
            <path d={middle(curve.points) ?? ""} class="line" />
            {last && (
              <text x={at(last) + 6} y={named[index] ?? 0} dy="0.32em">
                {size(curve.bytes)}
              </text>
            )}
          </g>
        );
      })}
    </Plot>
  );
}

/** The same heights, apart enough for a line of text each. */
function spread(heights: number[]): number[] {
  const order = heights
    .map((_, index) => index)
    .sort((a, b) => (heights[a] ?? 0) - (heights[b] ?? 0));
  const found = [...heights];
  let last = Number.NEGATIVE_INFINITY;
  for (const index of order) {
    last = Math.max(found[index] ?? 0, last + 14);
    found[index] = last;
  }
  return found;
}
