// The workload: a preset, a description, or a file that somebody has.
import { useState } from "preact/hooks";
import { explain, fieldsOf, postText } from "../api/client";
import type { Preset, WorkloadProfile } from "../api/types";
import { quantity, size } from "../format";
import { Fold, Group, NumberField, Select, TextField } from "../parts/field";
import { Trouble } from "../parts/loading";
import { withWorkload } from "./question";

const OPERATIONS = [
  ["read", "reads"],
  ["write", "writes"],
  ["mixed", "a mix"],
] as const;
const PATTERNS = [
  ["random", "random"],
  ["sequential", "sequential"],
] as const;
const DEMAND_UNITS = [
  ["demand_operations_per_second", "operations/s"],
  ["demand_bytes_per_second", "bytes/s"],
  ["", "none: at full rate"],
] as const;

interface FormProps {
  profile: WorkloadProfile;
  presets: Preset[];
  /** Whether the description is unfolded. */
  open: boolean;
  onChange: (profile: WorkloadProfile) => void;
}

/** Everything that says what the application does. */
export function WorkloadForm({ profile, presets, open, onChange }: FormProps) {
  const chosen = presets.find((one) => nameOf(one) === profile.name);
  return (
    <Group title="2. Workload">
      <Select
        label="Kind"
        value={chosen ? nameOf(chosen) : ""}
        choices={[
          ["", "my own"],
          ...presets.map((one) => [nameOf(one), one.describes, "Benchmarks"] as const),
        ]}
        onChange={(name) => {
          const found = presets.find((one) => nameOf(one) === name);
          // the bounds are the user's, not the benchmark's
          if (found) onChange({ ...found.profile, sla: profile.sla ?? {} } as WorkloadProfile);
        }}
      />
      <Upload
        onChange={(found) =>
          onChange({ ...found, sla: found.sla ?? profile.sla ?? {} } as WorkloadProfile)
        }
      />
      <Fold title={inBrief(profile)} open={open}>
        <Description profile={profile} onChange={onChange} />
      </Fold>
    </Group>
  );
}

/** A workload in a line. */
function inBrief({ workload }: WorkloadProfile): string {
  const { demand_bytes_per_second: bytes, demand_operations_per_second: operations } = workload;
  const kind = OPERATIONS.find(([name]) => name === (workload.operation ?? "read"))?.[1];
  const demand = bytes
    ? quantity(bytes, "B/s")
    : operations
      ? quantity(operations, "IOPS")
      : "full rate";
  const of = workload.useful_request_bytes ? ` of ${size(workload.useful_request_bytes)}` : "";
  return `${workload.pattern ?? "random"} ${kind}${of}, ${demand}`;
}

function nameOf(preset: Preset): string {
  return preset.profile.name ?? "";
}

function Description({ profile, onChange }: Pick<FormProps, "profile" | "onChange">) {
  const work = profile.workload;
  const demand = DEMAND_UNITS.find(([name]) => name && work[name] != null)?.[0] ?? "";
  const own = (changes: Record<string, unknown>) =>
    onChange({ ...withWorkload(profile, changes), name: "my workload" });
  return (
    <>
      <Select
        label="It does"
        name="operation"
        value={work.operation ?? "read"}
        choices={OPERATIONS}
        onChange={(operation) =>
          own({
            operation,
            read_fraction: operation === "mixed" ? (work.read_fraction ?? 0.7) : null,
          })
        }
      />
      {work.operation === "mixed" && (
        <NumberField
          label="Share of reads, %"
          name="read_fraction"
          min={0}
          max={100}
          value={Number(((work.read_fraction ?? 0.7) * 100).toPrecision(3))}
          onChange={(share) => own({ read_fraction: (share ?? 70) / 100 })}
        />
      )}
      <Select
        label="Pattern"
        name="pattern"
        value={work.pattern ?? "random"}
        choices={PATTERNS}
        onChange={(pattern) => own({ pattern })}
      />
      <NumberField
        label="Request, bytes"
        name="useful_request_bytes"
        min={512}
        step={512}
        value={work.useful_request_bytes}
        onChange={(bytes) => own({ useful_request_bytes: bytes })}
      />
      <Select
        label="Demand in"
        value={demand}
        choices={DEMAND_UNITS}
        onChange={(name) =>
          own({
            demand_bytes_per_second: name === "demand_bytes_per_second" ? 200e6 : null,
            demand_operations_per_second: name === "demand_operations_per_second" ? 20000 : null,
          })
        }
      />
      {demand && (
        <NumberField
          label="Demand"
          name={demand}
          min={1}
          value={work[demand]}
          onChange={(value) => own({ [demand]: value })}
        />
      )}
    </>
  );
}

function Upload({ onChange }: { onChange: (profile: WorkloadProfile) => void }) {
  const [trouble, setTrouble] = useState<string | null>(null);
  const [name, setName] = useState<string | null>(null);
  const [file, setFile] = useState<File>();
  const [cache, setCache] = useState<string | null>(null);
  const [buffered, setBuffered] = useState(false);
  const take = async (given: File | undefined, cache: string | null) => {
    setFile(given);
    setCache(cache);
    if (!given) return;
    const query = cache ? `?page_cache=${encodeURIComponent(cache)}` : "";
    try {
      onChange(await postText<WorkloadProfile>(`/workloads${query}`, await given.text()));
      setName(given.name);
      setTrouble(null);
    } catch (error) {
      setTrouble(explain(error));
      setBuffered(cache !== null || fieldsOf(error).some((one) => one.field === "/direct"));
    }
  };
  return (
    <>
      <div class="field">
        <label for="upload">From a file</label>
        <input
          id="upload"
          type="file"
          onChange={(event) => {
            setBuffered(false);
            void take(event.currentTarget.files?.[0], null);
          }}
        />
      </div>
      <p class="hint">
        {name
          ? `read from ${name}`
          : "workload profile (TOML, JSON), fio job file, fio iolog, blkparse text or MQSim trace"}
      </p>
      {trouble && <Trouble text={trouble} />}
      {buffered && (
        <TextField
          label="Page cache"
          name="page_cache"
          value={cache}
          onChange={(cache) => void take(file, cache)}
        />
      )}
    </>
  );
}
