// The quantities of a row that a chart or a table can show.
import type { Answer, Estimate, Row } from "../api/types";
import type { Unit } from "../format";

export interface Quantity {
  key: keyof Row & string;
  title: string;
  unit: Unit;
  log?: boolean;
}

const SCOPE_POWER: Record<string, Quantity> = {
  device: { key: "device_power_watts", title: "power of the drive", unit: "W" },
  device_cpu: { key: "device_cpu_power_watts", title: "power of drive and CPU", unit: "W" },
  system: { key: "system_power_watts", title: "power of the whole system", unit: "W" },
};

export const ENERGY: Quantity = {
  key: "joules_per_useful_gb",
  title: "energy per useful GB",
  unit: "J/GB",
};
export const TAIL: Quantity = {
  key: "latency_p99_ns",
  title: "p99 latency",
  unit: "ns",
  log: true,
};
export const MEAN: Quantity = {
  key: "latency_mean_ns",
  title: "mean latency",
  unit: "ns",
  log: true,
};
export const CAPACITY: Quantity = {
  key: "capacity_bytes_per_second",
  title: "capacity",
  unit: "B/s",
  log: true,
};

/** Power of what the answer's energy counts. */
export function scopePower(answer: Pick<Answer, "scope">): Quantity {
  return SCOPE_POWER[answer.scope] ?? (SCOPE_POWER.device_cpu as Quantity);
}

/** The estimate of a row; null where the profile does not know it. */
export function estimate(row: Row, quantity: Quantity): Estimate | null {
  return (row[quantity.key] as Estimate | null | undefined) ?? null;
}
