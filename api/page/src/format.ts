// Quantities as people read them; rates in SI units, request sizes in binary ones.
import { format } from "d3-format";
import type { Estimate } from "./api/types";

const three = format(".3~s");
/** Three digits. */
export const plain = format(".3~r");
const cents = format(",.2f");

export type Unit = "W" | "J/GB" | "B/s" | "IOPS" | "ns" | "J s" | "kWh" | "%" | "bytes" | "years";

/** A value with its unit; what nothing bounds comes as a word. */
export function quantity(value: number | "unbounded", unit: Unit): string {
  if (value === "unbounded") return value;
  switch (unit) {
    case "ns":
      return duration(value);
    case "B/s":
      return `${three(value)}B/s`.replace(/([kMGT])?B\/s$/, " $1B/s");
    case "IOPS":
      return `${three(value)} IOPS`;
    case "bytes":
      return size(value);
    case "J s":
      return `${three(value)} J s`;
    case "%":
      return `${plain(value)} %`;
    default:
      return `${Math.abs(value) >= 1e4 ? cents(value) : plain(value)} ${unit}`;
  }
}

/** Nanoseconds. */
export function duration(ns: number): string {
  if (ns >= 1e9) return `${plain(ns / 1e9)} s`;
  if (ns >= 1e6) return `${plain(ns / 1e6)} ms`;
  if (ns >= 1e3) return `${plain(ns / 1e3)} µs`;
  return `${plain(ns)} ns`;
}

/** The size of a request. */
export function size(bytes: number): string {
  if (bytes >= 1 << 20) return `${bytes / (1 << 20)} MiB`;
  return bytes >= 1024 ? `${bytes / 1024} KiB` : `${bytes} B`;
}

/** A value as a number; infinite where nothing bounds it. */
export function amount(value: number | "unbounded"): number {
  return value === "unbounded" ? Number.POSITIVE_INFINITY : value;
}

/** The interval of an estimate. */
export function interval(estimate: Estimate, unit: Unit): string {
  return `${quantity(estimate.low, unit)} to ${quantity(estimate.high, unit)}`;
}
