// The law of the drive's power: lines with bands, and the measurements that they rest on.
import { area, line } from "d3-shape";
import { useState } from "preact/hooks";
import type { Evidence, Law, LawLine, LawMeasurement, LawPoint, PowerLaw } from "../api/types";
import { FRAME, scaleOver } from "../charts/axes";
import { EvidenceLegend, marker } from "../charts/evidence";
import { Plot } from "../charts/plot";
import { type Points, TakeAlong } from "../charts/take_along";
import { quantity, size, type Unit } from "../format";
import { Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { Table } from "../parts/table";

type Rate = "bytes_per_second" | "operations_per_second";
const RATES = [
  ["bytes_per_second", "throughput"],
  ["operations_per_second", "operations a second"],
] as const;
const UNITS: Record<Rate, Unit> = { bytes_per_second: "B/s", operations_per_second: "IOPS" };
const WORK = [
  ["read", "reads"],
  ["write", "writes"],
] as const;

/** Watts by the work that is served. */
export function PowerChart({ device }: { device: string }) {
  const { value, trouble } = useResource<PowerLaw>(
    `/devices/${encodeURIComponent(device)}/power-law`,
  );
  return (
    <section aria-labelledby="power-law">
      <h2 id="power-law">Power by work</h2>
      {trouble && <Trouble text={trouble} />}
      {value?.note && <p>{value.note}.</p>}
      {value?.law && <LawView law={value.law} found={value} />}
    </section>
  );
}

function LawView({ law, found }: { law: Law; found: PowerLaw }) {
  const [operation, setOperation] = useState("read");
  const [rate, setRate] = useState<Rate>("bytes_per_second");
  const lines = law.lines.filter((one) => one.operation === operation);
  const measured = law.measurements.filter((one) => one.operation === operation);
  const kinds: Evidence[] = [...lines.map((one) => one.evidence)];
  if (measured.length > 0) kinds.push("measured");
  return (
    <>
      <Select label="Of" value={operation} choices={WORK} onChange={setOperation} />
      <Select
        label="Across"
        value={rate}
        choices={RATES}
        onChange={(name) => setRate(name as Rate)}
      />
      <figure class="chart">
        <TakeAlong
          name={`the power of ${operation}s by ${found.device}`}
          points={() => table(lines, measured)}
        />
        <Drawing lines={lines} measured={measured} rate={rate} />
        <figcaption>
          <ul class="legend" aria-label="Lines by size of the commands">
            {lines.map((one, at) => (
              <li key={nameOf(one)} class={`series-${at}`}>
                <span class="swatch" /> {nameOf(one)}
              </li>
            ))}
          </ul>
          <EvidenceLegend kinds={kinds} />
          <p class="hint">
            Lines: the law at PS0, with 90 % bands. Marks:{" "}
            {measured.length > 0
              ? `${measured.length} measurements, in the colour of the line whose commands are nearest in size`
              : "none, nobody measured this"}
            . {law.condition}. At rest: {quantity(law.idle_watts[0]?.value ?? 0, "W")}; never above{" "}
            {quantity(law.peak_watts.value, "W")}.
          </p>
        </figcaption>
      </figure>
      {measured.length > 0 && <Measurements rows={measured} />}
      <Parameters law={law} />
      <p class="hint">
        {found.sources.map((one) => `${one.name}: ${one.citation} (${one.licence})`).join("; ")}
      </p>
    </>
  );
}

function nameOf(one: LawLine): string {
  return `${size(one.request_bytes)} commands${one.collecting ? ", while it collects garbage" : ""}`;
}

const watts = (one: LawPoint) => one.device_power_watts;

function Drawing(props: { lines: LawLine[]; measured: LawMeasurement[]; rate: Rate }) {
  const { lines, measured, rate } = props;
  const frame = { ...FRAME, right: 36 };
  const shown = lines.flatMap((one) => one.points);
  // small commands alone reach rates of operations at which nothing was measured
  const most = rate === "operations_per_second" ? farthest(measured, rate) : null;
  const inside = (one: LawPoint) => most === null || one[rate] <= most;
  const across = [0, ...shown.filter(inside).map((one) => one[rate])];
  const x = scaleOver(across, [frame.left, frame.width - frame.right]);
  const y = scaleOver(
    [0, ...shown.map((one) => one.device_power_watts_high)],
    [frame.height - frame.bottom, frame.top],
  );
  const at = (one: LawPoint) => x(one[rate]);
  const band = area<LawPoint>()
    .x(at)
    .y0((one) => y(one.device_power_watts_low))
    .y1((one) => y(one.device_power_watts_high));
  const middle = line<LawPoint>()
    .x(at)
    .y((one) => y(watts(one)));
  return (
    <Plot
      frame={frame}
      x={x}
      y={y}
      xAxis={{
        title: RATES.find(([name]) => name === rate)?.[1] ?? "",
        tick: (value) => quantity(value, UNITS[rate]),
      }}
      yAxis={{ title: "power of the drive [W]", tick: String }}
      says="Power of the drive by the work it serves, with 90 % bands and measurements; the tables below hold the same"
    >
      {lines.map((one, index) => (
        <g key={nameOf(one)} class={`series-${index}`}>
          <path d={band(one.points.filter(inside)) ?? ""} class="band" />
          <path d={middle(one.points.filter(inside)) ?? ""} class="line" />
        </g>
      ))}
      {measured.map((one) => (
        <g key={`${one.bytes_per_second} ${one.request_bytes} ${one.device_power_watts}`}>
          <path
            d={marker("measured", 34)}
            class={`marker series-${nearest(lines, one)}`}
            transform={`translate(${x(one[rate])},${y(one.device_power_watts)})`}
          >
            <title>{readout(one)}</title>
          </path>
        </g>
      ))}
    </Plot>
  );
}

function farthest(measured: LawMeasurement[], rate: Rate): number | null {
  return measured.length > 0 ? 1.1 * Math.max(...measured.map((one) => one[rate])) : null;
}

/** The line whose commands are nearest in size, and which collects as much. */
function nearest(lines: LawLine[], one: LawMeasurement): number {
  const apart = lines.map(
    (each) =>
      Math.abs(Math.log(each.request_bytes / one.request_bytes)) +
      (each.collecting === one.collecting > 0.5 ? 0 : 100),
  );
  return apart.indexOf(Math.min(...apart));
}

function readout(one: LawMeasurement): string {
  return `measured: ${size(Math.round(one.request_bytes / 512) * 512)} commands, ${quantity(one.bytes_per_second, "B/s")}, ${quantity(one.operations_per_second, "IOPS")}: ${quantity(one.device_power_watts, "W")}`;
}

function table(lines: LawLine[], measured: LawMeasurement[]): Points {
  const names = ["bytes_per_second", "operations_per_second", "device_power_watts"] as const;
  const ends = ["device_power_watts_low", "device_power_watts_high"] as const;
  return {
    names: ["kind", "operation", "request_bytes", "collecting", ...names, ...ends, "evidence"],
    rows: [
      ...lines.flatMap((one) =>
        one.points.map((point) => [
          ...["law", one.operation, one.request_bytes, Number(one.collecting)],
          ...[...names, ...ends].map((name) => point[name]),
          one.evidence,
        ]),
      ),
      ...measured.map((one) => [
        ...["measurement", one.operation, one.request_bytes, one.collecting],
        ...names.map((name) => one[name]),
        ...[null, null, "measured"],
      ]),
    ],
  };
}

function Measurements({ rows }: { rows: LawMeasurement[] }) {
  return (
    <details class="table">
      <summary>The measurements as a table ({rows.length} rows)</summary>
      <Table heads={["Commands of", "Throughput", "Operations a second", "Collecting", "Power"]}>
        {rows.map((one) => (
          <tr key={`${one.bytes_per_second} ${one.request_bytes} ${one.device_power_watts}`}>
            <th scope="row">{size(Math.round(one.request_bytes / 512) * 512)}</th>
            <td>{quantity(one.bytes_per_second, "B/s")}</td>
            <td>{quantity(one.operations_per_second, "IOPS")}</td>
            <td>{one.collecting > 0 ? quantity(100 * one.collecting, "%") : "no"}</td>
            <td>{quantity(one.device_power_watts, "W")}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}

const SCALED: Record<string, [number, string]> = { "J/B": [1e9, "nJ/B"], J: [1e6, "µJ"] };

function Parameters({ law }: { law: Law }) {
  return (
    <details class="table">
      <summary>The law's parameters ({law.parameters.length})</summary>
      <Table heads={["Parameter", "Value", "Standard deviation", "Evidence", "Source"]}>
        {law.parameters.map((one) => {
          const [factor, unit] = SCALED[one.unit] ?? [1, one.unit];
          return (
            <tr key={one.name}>
              <th scope="row">{one.name.replaceAll("_", " ")}</th>
              <td>{`${(one.value * factor).toPrecision(3)} ${unit}`}</td>
              <td>{`${(one.sd * factor).toPrecision(2)} ${unit}`}</td>
              <td>{one.evidence}</td>
              <td>{one.source}</td>
            </tr>
          );
        })}
      </Table>
    </details>
  );
}
