// Starts what takes long: measurements that are uploaded, and a calibration on them.
import { useState } from "preact/hooks";
import { explain, post, postFile } from "../api/client";
import type { DatasetSummary, DeviceSummary, JobStatus } from "../api/types";
import { Group, Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";

const FORMATS: Record<string, string> = {
  parquet: "application/vnd.apache.parquet",
  csv: "text/csv",
  json: "application/json",
};

/** Upload runs of a drive and calibrate its profile on them. */
export function NewJobs({ onStarted }: { onStarted: () => void }) {
  const devices = useResource<{ devices: DeviceSummary[] }>("/devices");
  const [device, setDevice] = useState("samsung-980-pro-1tb");
  const [uploaded, setUploaded] = useState<DatasetSummary | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const take = async (file: File | undefined) => {
    if (!file) return;
    setTrouble(null);
    try {
      const type = FORMATS[file.name.split(".").at(-1)?.toLowerCase() ?? ""] ?? "text/csv";
      setUploaded(await postFile<DatasetSummary>(`/datasets?device=${device}`, file, type));
    } catch (error) {
      setUploaded(null);
      setTrouble(explain(error));
    }
  };
  const calibrate = async () => {
    if (!uploaded) return;
    try {
      await post<JobStatus>(`/devices/${device}/calibrations`, {
        datasets: [uploaded.id],
        drive: device,
      });
      onStarted();
    } catch (error) {
      setTrouble(explain(error));
    }
  };
  return (
    <Group title="Calibrate a drive">
      <Select
        label="Model"
        value={device}
        choices={(devices.value?.devices ?? []).map((one) => [one.id, one.model] as const)}
        onChange={setDevice}
      />
      <div class="field">
        <label for="runs">Runs</label>
        <input
          id="runs"
          type="file"
          accept=".parquet,.csv,.json"
          onChange={(event) => take(event.currentTarget.files?.[0])}
        />
      </div>
      <p class="hint">
        {uploaded
          ? `${uploaded.rows} rows were taken, ${uploaded.warnings} warnings`
          : "Parquet, CSV with the schema's fields as columns, or fio's JSON"}
      </p>
      {trouble && <Trouble text={trouble} />}
      <button type="button" onClick={calibrate} disabled={!uploaded}>
        Calibrate on it
      </button>
    </Group>
  );
}
