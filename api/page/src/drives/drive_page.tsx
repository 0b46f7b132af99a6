// One SSD model: what is published of it, its power states, and what its profile says.
import type { DeviceDetail } from "../api/types";
import { Link } from "../app";
import { Trouble, useResource } from "../parts/loading";
import { address } from "../router";
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
      {drive.profile && <SaturationChart device={drive.id} />}
      <PowerStates drive={drive} />
      <Facts drive={drive} />
    </article>
  );
}

function PowerStates({ drive }: { drive: DeviceDetail }) {
  if (drive.power_states.length === 0) return null;
  const columns = Object.keys(
    drive.power_states[0] ?? {},
  ) as (keyof DeviceDetail["power_states"][0])[];
  return (
    <section aria-labelledby="power-states">
      <h2 id="power-states">Power states</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              {columns.map((name) => (
                <th scope="col" key={name}>
                  {name.replaceAll("_", " ")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {drive.power_states.map((state) => (
              <tr key={JSON.stringify(state)}>
                {columns.map((name) => (
                  <td key={name}>{said(state[name])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">{drive.declared_power_note}</p>
    </section>
  );
}

function said(value: unknown): string {
  if (value === null || value === undefined) return "unknown";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function Facts({ drive }: { drive: DeviceDetail }) {
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Published facts</h2>
      <div class="scroll">
        <table>
          <tbody>
            {drive.facts.map((fact) => (
              <tr key={JSON.stringify(fact)}>
                {Object.entries(fact).map(([name, value]) => (
                  <td key={name}>{said(value)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
