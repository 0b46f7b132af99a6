// Configurations in words.
import type { Configuration } from "../api/types";
import { size } from "../format";

/** The settings that matter most, in a line. */
export function describe(one: Configuration): string {
  return settings(one).join(", ");
}

/** The settings in which each differs from another of them, in a line for each. */
export function contrast(all: Configuration[]): string[] {
  const lines = all.map(settings);
  const common = new Set(lines[0]?.filter((part) => lines.every((each) => each.includes(part))));
  return lines.map((parts) => parts.filter((part) => !common.has(part)).join(", "));
}

function settings(one: Configuration): string[] {
  const parts = [
    one.request_bytes ? size(one.request_bytes) : null,
    one.queue_depth ? `depth ${one.queue_depth}` : null,
    one.jobs ? `${one.jobs} ${one.jobs === 1 ? "job" : "jobs"}` : null,
    one.engine,
    one.completion,
    one.submission_polling ? "SQ poll" : null,
    one.scheduler ? `scheduler ${one.scheduler}` : null,
    one.power_state === null || one.power_state === undefined ? null : `PS${one.power_state}`,
    one.power_limit_watts ? `at most ${one.power_limit_watts} W` : null,
    one.cpu_governor ? `governor ${one.cpu_governor}` : null,
  ];
  return parts.filter((part): part is NonNullable<typeof part> => Boolean(part));
}

/** What differs between two configurations, with both values. */
export function differences(now: Configuration, then: Configuration): [string, string, string][] {
  const names = Object.keys(then) as (keyof Configuration)[];
  return names
    .filter((name) => then[name] !== null && String(now[name]) !== String(then[name]))
    .map((name) => [name, String(now[name] ?? "not set"), String(then[name])]);
}

const UNITS = ["_watts", "_ns", "_bytes_per_second", "_bytes", "_max", "_min", "_hertz"];

/** A field's name in words. */
export function word(field: string): string {
  let name = field;
  for (const ending of [...UNITS.slice(4), ...UNITS]) name = name.replace(ending, "");
  return name.replaceAll("_", " ").replace("gb", "GB").replace("kwh", "kWh");
}
