// A fleet as the page edits it: what the service takes, and the columns of its three tables.
import type { components } from "../api/schema";
import type { Column } from "../parts/sheet";

export type Fleet = components["schemas"]["Fleet"];
type Domain = Fleet["domains"][number];
type Drives = Fleet["drives"][number];
type Class = Fleet["classes"][number];

export const EMPTY_DOMAIN = { name: "" } as Domain;
export const EMPTY_DRIVES = {
  name: "",
  device: "",
  count: 1,
  domain: "",
  classes: [],
} as unknown as Drives;
export const EMPTY_CLASS = {
  name: "",
  demand_bytes_per_second: 1e9,
  redirectable: true,
  workload: { workload: { operation: "read", useful_request_bytes: 4096 }, sla: {} },
} as unknown as Class;
export const EMPTY: Fleet = {
  name: "fleet",
  domains: [{ ...EMPTY_DOMAIN, name: "rack" }],
  drives: [{ ...EMPTY_DRIVES, name: "drives", domain: "rack", classes: ["work"] }],
  classes: [{ ...EMPTY_CLASS, name: "work" }],
} as Fleet;

/** A rack of drives any of which may serve a key-value store. */
export const EXAMPLE = {
  name: "rack",
  domains: [{ name: "rack", limit_watts: 400, base_watts: 100 }],
  drives: [
    { name: "shared", device: "samsung-980-pro-1tb", count: 20, domain: "rack", classes: ["kv"] },
  ],
  classes: [
    {
      name: "kv",
      demand_bytes_per_second: 5e9,
      redirectable: true,
      workload: {
        workload: { operation: "read", useful_request_bytes: 4096 },
        sla: { latency_p99_ns_max: 2e6 },
      },
    },
  ],
} as unknown as Fleet;

/** What the service cannot read stays as it was typed, and the service says so at the field. */
function numberOf(text: string, factor = 1): number | string | undefined {
  const value = Number(text.replace(/[\s']/g, ""));
  if (text === "") return undefined;
  return Number.isNaN(value) ? text : Number((value * factor).toPrecision(12));
}

function shown(value: unknown, factor = 1): string {
  if (value === null || value === undefined) return "";
  return typeof value === "number"
    ? String(Number((value / factor).toPrecision(12)))
    : String(value);
}

function at(object: unknown, path: string[]): unknown {
  return path.reduce<unknown>(
    (one, name) => (one as Record<string, unknown> | null)?.[name],
    object,
  );
}

/** The object with another value at a path; undefined takes the field away. */
function withAt<T>(object: T, path: string[], value: unknown): T {
  const [first = "", ...rest] = path;
  const { [first]: old, ...others } = (object ?? {}) as Record<string, unknown>;
  const now = rest.length ? withAt(old, rest, value) : value;
  return (now === undefined ? others : { ...others, [first]: now }) as T;
}

function text<T>(path: string, title: string, choices?: readonly string[]): Column<T> {
  const parts = path.split("/");
  return {
    name: path,
    title,
    get: (row) => shown(at(row, parts)),
    set: (row, value) => withAt(row, parts, value || undefined),
    ...(choices ? { choices } : {}),
  };
}

function amount<T>(path: string, title: string, factor = 1): Column<T> {
  const parts = path.split("/");
  return {
    name: path,
    title,
    get: (row) => shown(at(row, parts), factor),
    set: (row, value) => withAt(row, parts, numberOf(value, factor)),
  };
}

const YES = /^(yes|true|1|x)$/i;

export const DOMAIN_COLUMNS: Column<Domain>[] = [
  text("name", "Name"),
  text("parent", "Fed by"),
  amount("limit_watts", "Limit, W"),
  amount("base_watts", "Other load, W"),
];

/** The columns of groups of drives. */
export function driveColumns(fleet: Fleet, devices: readonly string[]): Column<Drives>[] {
  return [
    text("name", "Name"),
    text("device", "Model", devices),
    amount("count", "Drives"),
    text(
      "domain",
      "Domain",
      fleet.domains.map((one) => one.name),
    ),
    {
      name: "classes",
      title: "Classes",
      get: (row) => (row.classes ?? []).join(", "),
      set: (row, value) =>
        ({ ...row, classes: value.split(/[,;\s]+/).filter(Boolean) }) as unknown as Drives,
    },
  ];
}

export const CLASS_COLUMNS: Column<Class>[] = [
  text("name", "Name"),
  amount("demand_bytes_per_second", "Demand, MB/s", 1e6),
  text("workload/workload/operation", "Operation", ["read", "write", "mixed"]),
  amount("workload/workload/read_fraction", "Reads, %", 0.01),
  amount("workload/workload/useful_request_bytes", "Request, bytes"),
  amount("workload/sla/latency_p99_ns_max", "p99 at most, µs", 1e3),
  {
    name: "redirectable",
    title: "Any drive",
    get: (row) => (row.redirectable ? "yes" : "no"),
    set: (row, value) => ({ ...row, redirectable: YES.test(value) }),
    choices: ["yes", "no"],
  },
];

/** Longest address that servers and browsers take without doubt. */
const ADDRESS_MAX = 6000;

/** The fleet for the address; null where it is too large for one. */
export function toAddress(fleet: Fleet, planned: boolean): Record<string, string> | null {
  const query = { fleet: JSON.stringify(fleet), ...(planned ? { planned: "1" } : {}) };
  return new URLSearchParams(query).toString().length <= ADDRESS_MAX ? query : null;
}

/** A fleet from text; what is wrong with it in words. */
export function fleetOf(json: string): { fleet: Fleet | null; trouble: string | null } {
  try {
    const found = JSON.parse(json) as Partial<Fleet> | null;
    for (const name of ["domains", "drives", "classes"] as const) {
      if (!Array.isArray(found?.[name]))
        return { fleet: null, trouble: `it has no list "${name}"` };
    }
    return { fleet: found as Fleet, trouble: null };
  } catch (error) {
    return { fleet: null, trouble: (error as Error).message };
  }
}
