// The models of the catalogue as choices.
import type { DeviceDetail, DeviceSummary } from "../api/types";
import { quantity, size } from "../format";

/** Id, name and group of each model; the chosen one alone until the catalogue is there. */
export function models(
  devices: DeviceSummary[] | undefined,
  chosen: string,
): [id: string, name: string, group?: string][] {
  if (!devices) return [[chosen, chosen]];
  const group = (one: DeviceSummary) =>
    one.performance && one.power
      ? "Performance and power measured"
      : one.performance || one.power
        ? "Partly measured"
        : one.drive_class === "emulated" // no facts of its own: it does what its machine does
          ? "Only when measured"
          : "From published facts";
  const rank = (one: DeviceSummary) =>
    Number(one.performance) + Number(one.power) - Number(one.drive_class === "emulated");
  return [...devices]
    .sort((one, other) => rank(other) - rank(one) || one.model.localeCompare(other.model))
    .map((one) => [one.id, one.model, group(one)]);
}

/** The value of a published fact with its unit. */
export function factText(fact: DeviceDetail["facts"][number]): string {
  const { value, unit } = fact;
  if (typeof value !== "number") return String(value);
  if (unit === "bytes") return value % 1e6 === 0 ? `${value / 1e9} GB` : size(value);
  if (unit === "W") return quantity(value, unit);
  if (unit === "bytes/s") return quantity(value, "B/s");
  return ["text", "count", "fraction"].includes(unit) ? String(value) : `${value} ${unit}`;
}
