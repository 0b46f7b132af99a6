// Every SSD model that is known: searched, filtered, sorted, and compared.
import { useEffect, useState } from "preact/hooks";
import { explain, get, isSuperseded } from "../api/client";
import type { DeviceDetail, DeviceSummary } from "../api/types";
import { Link } from "../app";
import { Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { Table } from "../parts/table";
import { address, remember } from "../router";
import { factText } from "./models";

const ORDERS = [
  ["", "measured first"],
  ["model", "model"],
  ["drive_class", "class"],
  ["interface", "interface"],
] as const;
const SHORT = 30;
const MOST = 4;

/** The catalogue, with what a profile answers for each model; its state is in the address. */
export function DrivesPage({ query }: { query: URLSearchParams }) {
  const { value, trouble } = useResource<{ devices: DeviceSummary[] }>("/devices");
  const [state, setState] = useState<Record<string, string>>(() => Object.fromEntries(query));
  const set = (name: string, to: string) =>
    setState((last) =>
      Object.fromEntries(Object.entries({ ...last, [name]: to }).filter(([, one]) => one)),
    );
  useEffect(() => remember(state), [state]);
  const devices = value?.devices ?? [];
  const shown = select(devices, state);
  const listed = state.all ? shown : shown.slice(0, SHORT);
  const chosen = (state.compare ?? "").split(",").filter(Boolean);
  const compared = devices.filter((one) => chosen.includes(one.id));
  const kinds = (name: "drive_class" | "interface") =>
    [["", "any"], ...[...new Set(devices.map((one) => one[name]))].sort().map(twice)] as [
      string,
      string,
    ][];
  return (
    <section>
      <h1>Drives</h1>
      {trouble && <Trouble text={trouble} />}
      <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <div class="field">
          <label for="search">Search</label>
          <input
            id="search"
            type="search"
            value={state.q ?? ""}
            onInput={(event) => set("q", event.currentTarget.value)}
          />
        </div>
        <Select
          label="Known from"
          value={state.known ?? ""}
          choices={[
            ["", "any"],
            ["measured", "measurements"],
            ["facts", "facts only"],
          ]}
          onChange={(to) => set("known", to)}
        />
        <Select
          label="Interface"
          value={state.interface ?? ""}
          choices={kinds("interface")}
          onChange={(to) => set("interface", to)}
        />
        <Select
          label="Class"
          value={state.class ?? ""}
          choices={kinds("drive_class")}
          onChange={(to) => set("class", to)}
        />
        <Select
          label="Sort by"
          value={state.sort ?? ""}
          choices={ORDERS}
          onChange={(to) => set("sort", to)}
        />
      </form>
      {compared.length > 1 && <Comparison devices={compared} />}
      <p role="status">
        {value && `${shown.length} of ${devices.length} models; select two to four to compare`}
      </p>
      {value && (
        <Table heads={["Compare", "Model", "Class", "Interface", "Performance", "Power"]}>
          {listed.map((one) => (
            <tr key={one.id}>
              <td>
                <input
                  type="checkbox"
                  aria-label={`compare ${one.model}`}
                  checked={chosen.includes(one.id)}
                  disabled={chosen.length >= MOST && !chosen.includes(one.id)}
                  onChange={(event) =>
                    set(
                      "compare",
                      (event.currentTarget.checked
                        ? [...chosen, one.id]
                        : chosen.filter((id) => id !== one.id)
                      ).join(","),
                    )
                  }
                />
              </td>
              <th scope="row">
                <Link to={address(`drives/${encodeURIComponent(one.id)}`)}>{one.model}</Link>
              </th>
              <td>{one.drive_class}</td>
              <td>{one.interface}</td>
              <td>{known(one.performance)}</td>
              <td>{known(one.power)}</td>
            </tr>
          ))}
        </Table>
      )}
      {listed.length < shown.length && (
        <p>
          <button type="button" onClick={() => set("all", "1")}>
            Show all {shown.length} models
          </button>
        </p>
      )}
    </section>
  );
}

function twice(text: string): [string, string] {
  return [text, text];
}

function known(measured: boolean): string {
  return measured ? "measured" : "from its facts";
}

function select(devices: DeviceSummary[], state: Record<string, string>): DeviceSummary[] {
  const words = (state.q ?? "").toLowerCase().split(/\s+/);
  const found = devices.filter(
    (one) =>
      words.every((word) => `${one.vendor} ${one.model} ${one.id}`.toLowerCase().includes(word)) &&
      (!state.interface || one.interface === state.interface) &&
      (!state.class || one.drive_class === state.class) &&
      (!state.known || (one.performance || one.power) === (state.known === "measured")),
  );
  const key = (one: DeviceSummary) => {
    if (!state.sort) return `${2 - Number(one.performance) - Number(one.power)}`;
    return state.sort === "drive_class" || state.sort === "interface" ? one[state.sort] : "";
  };
  return found.sort(
    (one, other) => key(one).localeCompare(key(other)) || one.model.localeCompare(other.model),
  );
}

/** What the catalogue states of the chosen models, with its source on request. */
function Comparison({ devices }: { devices: DeviceSummary[] }) {
  const [details, setDetails] = useState<DeviceDetail[]>([]);
  const [trouble, setTrouble] = useState<string | null>(null);
  const ids = devices.map((one) => one.id).join();
  useEffect(() => {
    const control = new AbortController();
    setDetails([]); // facts of other models
    Promise.all(
      ids
        .split(",")
        .map((id) => get<DeviceDetail>(`/devices/${encodeURIComponent(id)}`, control.signal)),
    )
      .then((found) => {
        setDetails(found);
        setTrouble(null);
      })
      .catch((error: unknown) => {
        if (!isSuperseded(error)) setTrouble(explain(error));
      });
    return () => control.abort();
  }, [ids]);
  const rows: [string, (one: DeviceSummary) => string][] = [
    ["Vendor", (one) => one.vendor],
    ["Class", (one) => one.drive_class],
    ["Interface", (one) => one.interface],
    ["Performance", (one) => known(one.performance)],
    ["Power", (one) => known(one.power)],
  ];
  const states = (metric: string) =>
    details.map((one) => one.facts.find((fact) => fact.metric === metric));
  const metrics = [...new Set(details.flatMap((one) => one.facts.map((fact) => fact.metric)))]
    .map((metric) => [metric, states(metric)] as const)
    .sort((one, other) => count(other[1]) - count(one[1]) || one[0].localeCompare(other[0]));
  return (
    <section aria-labelledby="comparison">
      <h2 id="comparison">Comparison</h2>
      {trouble && <Trouble text={trouble} />}
      <Table heads={["Property", ...devices.map((one) => one.model)]}>
        {rows.map(([name, of]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {devices.map((one) => (
              <td key={one.id}>{of(one)}</td>
            ))}
          </tr>
        ))}
        {metrics.map(([metric, facts]) => (
          <tr key={metric}>
            <th scope="row">{metric.replaceAll("_", " ")}</th>
            {facts.map((fact, at) => (
              <td key={devices[at]?.id} title={fact?.source ?? ""}>
                {fact ? factText(fact) : "not stated"}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </section>
  );
}

function count(facts: readonly unknown[]): number {
  return facts.filter(Boolean).length;
}
