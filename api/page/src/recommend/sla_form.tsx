// The bounds, each a slider.
import type { WorkloadProfile } from "../api/types";
import { duration, quantity } from "../format";
import { Group, Select } from "../parts/field";
import { Slider } from "../parts/slider";
import { slaOf, withSla } from "./question";

const OBJECTIVES = [
  ["", "what fits the demand"],
  ["watts", "watts"],
  ["joules_per_useful_gb", "joules per useful GB"],
  ["edp", "energy-delay product"],
  ["kwh_per_year", "kWh a year"],
  ["cost", "cost of electricity"],
  ["co2", "CO2"],
] as const;
const SCOPES = [
  ["device", "the drive"],
  ["device_cpu", "drive and CPU"],
  ["system", "the whole system"],
] as const;

interface Bound {
  name:
    | "latency_p99_ns_max"
    | "latency_mean_ns_max"
    | "throughput_bytes_per_second_min"
    | "device_power_watts_max";
  label: string;
  low: number;
  high: number;
  start: number;
  show: (value: number) => string;
}

const BOUNDS: Bound[] = [
  {
    name: "latency_p99_ns_max",
    label: "p99 latency at most",
    low: 2e4,
    high: 1e8,
    start: 2e6,
    show: duration,
  },
  {
    name: "latency_mean_ns_max",
    label: "mean latency at most",
    low: 1e4,
    high: 1e8,
    start: 5e5,
    show: duration,
  },
  {
    name: "throughput_bytes_per_second_min",
    label: "throughput at least",
    low: 1e6,
    high: 2e10,
    start: 2e8,
    show: (value) => quantity(value, "B/s"),
  },
  {
    name: "device_power_watts_max",
    label: "drive draws at most",
    low: 1,
    high: 25,
    start: 5,
    show: (value) => quantity(value, "W"),
  },
];

/** What must hold, how surely, and what is made small under it. */
export function SlaForm(props: {
  profile: WorkloadProfile;
  onChange: (profile: WorkloadProfile) => void;
}) {
  const { profile, onChange } = props;
  const sla = slaOf(profile);
  return (
    <>
      <Group title="SLA">
        {BOUNDS.map((bound) => (
          <Slider
            key={bound.name}
            log
            label={bound.label}
            low={bound.low}
            high={bound.high}
            start={bound.start}
            show={bound.show}
            value={sla[bound.name] ?? null}
            onChange={(value) => onChange(withSla(profile, { [bound.name]: value }))}
          />
        ))}
        <Slider
          always
          label="held with a confidence of"
          low={0.5}
          high={0.99}
          start={0.9}
          show={(value) => `${Math.round(value * 100)} %`}
          value={sla.confidence ?? 0.9}
          onChange={(value) => onChange(withSla(profile, { confidence: value ?? 0.9 }))}
        />
      </Group>
      <Group title="Objective">
        <Select
          label="Least"
          name="objective"
          value={profile.objective ?? ""}
          choices={OBJECTIVES}
          onChange={(name) =>
            onChange({
              ...profile,
              objective: (name || null) as NonNullable<WorkloadProfile["objective"]> | null,
            })
          }
        />
        <Select
          label="Of"
          name="scope"
          value={profile.scope ?? "device_cpu"}
          choices={SCOPES}
          onChange={(scope) =>
            onChange({ ...profile, scope: scope as NonNullable<WorkloadProfile["scope"]> })
          }
        />
      </Group>
    </>
  );
}
