// One SSD model: what is published of it, its power states, and what its profile says.
import type { DeviceDetail } from "../api/types";
import { Link } from "../app";
import { duration, quantity } from "../format";
import { Trouble, useResource } from "../parts/loading";
import { Table } from "../parts/table";
import { address } from "../router";
import { ModelCard } from "./model_card";
import { factText } from "./models";
import { PowerChart } from "./power_chart";
import { SaturationChart } from "./saturation_chart";

/** Everything that is known of a model. */
export function DrivePage({ id }: { id: string }) {
  const { value: drive, trouble } = useResource<DeviceDetail>(`/devices/${encodeURIComponent(id)}`);
  if (trouble) return <Trouble text={trouble} />;
  if (!drive) return <p>Loading …</p>;
  return (
    <article>
      <h1>{drive.model}</h1>
      <p>
        {drive.vendor}, {drive.interface}, {drive.drive_class}.{" "}
        <Link to={address("", { device: drive.id })}>Recommend settings for it</Link>
      </p>
      {drive.what_to_measure && <p class="hint">{drive.what_to_measure}</p>}
      <PowerStates drive={drive} />
      {drive.profile && <SaturationChart device={drive.id} />}
      {drive.profile && <PowerChart device={drive.id} />}
      {drive.profile && <ModelCard device={drive.id} />}
      <Facts drive={drive} />
    </article>
  );
}

type State = DeviceDetail["power_states"][0];

const STATE_COLUMNS: [string, (state: State) => string][] = [
  ["Declared at most", (one) => quantity(one.max_power_watts, "W")],
  ["Declared while active", (one) => watts(one.active_power_watts)],
  ["Declared at rest", (one) => watts(one.idle_power_watts)],
  ["Does work", (one) => (one.operational ? "yes" : "no, it sleeps")],
  ["Entering takes", (one) => micros(one.entry_latency_us)],
  ["Leaving takes", (one) => micros(one.exit_latency_us)],
  [
    "Ranks: read and write throughput, latency",
    (one) =>
      [
        one.relative_read_throughput,
        one.relative_write_throughput,
        one.relative_read_latency,
        one.relative_write_latency,
      ]
        .map((rank) => rank ?? "?")
        .join(", "),
  ],
];

function watts(value: number | null | undefined): string {
  return value == null ? "not stated" : quantity(value, "W");
}

function micros(value: number | null | undefined): string {
  return value == null ? "not stated" : duration(value * 1000);
}

function PowerStates({ drive }: { drive: DeviceDetail }) {
  if (drive.power_states.length === 0) return null;
  const known = STATE_COLUMNS.filter(([, said]) =>
    drive.power_states.some((one) => !/^(not stated|\?[?, ]*)$/.test(said(one))),
  );
  const sources = new Set(
    drive.power_states.map((one) =>
      [one.source, one.firmware && `firmware ${one.firmware}`, one.note].filter(Boolean).join("; "),
    ),
  );
  return (
    <section aria-labelledby="power-states">
      <h2 id="power-states">Power states</h2>
      <Table heads={["State", ...known.map(([head]) => head)]}>
        {drive.power_states.map((state) => (
          <tr key={`${state.firmware} ${state.index}`}>
            <th scope="row">PS{state.index}</th>
            {known.map(([head, said]) => (
              <td key={head}>{said(state)}</td>
            ))}
          </tr>
        ))}
      </Table>
      <p class="hint">
        {drive.declared_power_note}; lower ranks are better. {[...sources].join("; ")}
      </p>
    </section>
  );
}

function Facts({ drive }: { drive: DeviceDetail }) {
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Published facts</h2>
      <Table heads={["Fact", "Value", "Source"]}>
        {drive.facts.map((fact) => (
          <tr key={JSON.stringify(fact)}>
            <th scope="row">{fact.metric.replaceAll("_", " ")}</th>
            <td>
              {factText(fact)}
              {fact.note && <small>{fact.note}</small>}
            </td>
            <td>{fact.source}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
