// Every SSD model that is known.

import type { DeviceSummary } from "../api/types";
import { Link } from "../app";
import { Trouble, useResource } from "../parts/loading";
import { Table } from "../parts/table";
import { address } from "../router";

/** The catalogue, with what a profile answers for each model. */
export function DrivesPage() {
  const { value, trouble } = useResource<{ devices: DeviceSummary[] }>("/devices");
  return (
    <section>
      <h1>Drives</h1>
      {trouble && <Trouble text={trouble} />}
      {value && (
        <Table heads={["Model", "Class", "Interface", "Performance", "Power"]}>
          {value.devices.map((one) => (
            <tr key={one.id}>
              <th scope="row">
                <Link to={address(`drives/${encodeURIComponent(one.id)}`)}>{one.model}</Link>
              </th>
              <td>{one.drive_class}</td>
              <td>{one.interface}</td>
              <td>{one.performance ? "measured" : "from its facts"}</td>
              <td>{one.power ? "measured" : "from its facts"}</td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}
