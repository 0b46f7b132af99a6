// What runs today: a preset, or its settings.
import type { WorkloadProfile } from "../api/types";
import { Fold, Group, NumberField, Select, TextField } from "../parts/field";
import { withCurrent } from "./question";

const ENGINES = [
  ["", "the profile's"],
  ...["psync", "posixaio", "libaio", "io_uring", "io_uring_cmd", "spdk"].map(
    (name) => [name, name] as const,
  ),
] as const;

const APPLICATIONS = [
  ["", "my own"],
  ["postgresql", "PostgreSQL"],
  ["mysql", "MySQL"],
  ["mariadb", "MariaDB"],
  ["rocksdb", "RocksDB"],
  ["ceph", "Ceph OSD"],
  ["qemu", "QEMU"],
  ["libvirt", "libvirt"],
  ["fio", "fio"],
] as const;

const PRESETS: readonly { title: string; current: Record<string, unknown> | null }[] = [
  { title: "not stated", current: null },
  {
    title: "one request at a time (psync, 1 × 1)",
    current: { engine: "psync", queue_depth: 1, jobs: 1 },
  },
  {
    title: "asynchronous, deep queue (libaio, 32 × 1)",
    current: { engine: "libaio", queue_depth: 32, jobs: 1 },
  },
  {
    title: "many threads, polled (io_uring, 8 × 8)",
    current: { engine: "io_uring", completion: "polled", queue_depth: 8, jobs: 8 },
  },
];

/** How the application does its I/O now; what is left out takes the profile's default. */
export function TodayForm(props: {
  profile: WorkloadProfile;
  /** The application and its version, as `postgresql=17`. */
  settings: string;
  onSettings: (settings: string) => void;
  /** Whether the settings are unfolded. */
  open: boolean;
  onChange: (profile: WorkloadProfile) => void;
}) {
  const { profile, onChange } = props;
  const { current } = profile;
  const [application = "", version = ""] = props.settings.split("=");
  const chosen = PRESETS.findIndex((one) => same(one.current, current ?? null));
  return (
    <Group title="3. What runs today">
      <Select
        label="Application"
        name="settings"
        value={application}
        choices={APPLICATIONS}
        onChange={props.onSettings}
      />
      {application && (
        <TextField
          label="Version"
          value={version}
          onChange={(text) => props.onSettings(text ? `${application}=${text}` : application)}
        />
      )}
      <Select
        label="I/O"
        value={chosen < 0 ? "" : String(chosen)}
        choices={[
          ["", "my own"],
          ...PRESETS.map(({ title }, index) => [String(index), title] as const),
        ]}
        onChange={(index) => {
          const { current: _, ...rest } = profile;
          const preset = PRESETS[Number(index)];
          if (!index || !preset) return;
          onChange(
            (preset.current ? { ...rest, current: preset.current } : rest) as WorkloadProfile,
          );
        }}
      />
      <Fold title="engine, queue depth, jobs" open={props.open}>
        <Select
          label="Engine"
          name="engine"
          value={current?.engine ?? ""}
          choices={ENGINES}
          onChange={(engine) => onChange(withCurrent(profile, { engine: engine || null }))}
        />
        <NumberField
          label="Queue depth"
          name="queue_depth"
          min={1}
          step={1}
          value={current?.queue_depth}
          onChange={(depth) => onChange(withCurrent(profile, { queue_depth: depth }))}
        />
        <NumberField
          label="Jobs"
          name="jobs"
          min={1}
          step={1}
          value={current?.jobs}
          onChange={(jobs) => onChange(withCurrent(profile, { jobs }))}
        />
      </Fold>
      <p class="hint">Queue depth × jobs. If it is not stated, no saving is computed.</p>
    </Group>
  );
}

function same(one: object | null, other: object | null): boolean {
  const text = (of: object | null) => JSON.stringify(of && Object.entries(of).sort());
  return text(one) === text(other);
}
