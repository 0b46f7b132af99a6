// Starts what takes long: measurements that are uploaded, and a calibration on them.
import { useState } from "preact/hooks";
import { explain, post, postFile } from "../api/client";
import type { DatasetSummary, DeviceSummary, JobStatus } from "../api/types";
import { models } from "../drives/models";
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
  const [uploaded, setUploaded] = useState<DatasetSummary[]>([]);
  const [refused, setRefused] = useState<string[]>([]);
  const [left, setLeft] = useState(0);
  const [trouble, setTrouble] = useState<string | null>(null);
  const take = async (files: FileList | null) => {
    if (!files?.length) return;
    setTrouble(null);
    setUploaded([]);
    setRefused([]);
    const all = [...files];
    for (const [at, file] of all.entries()) {
      setLeft(all.length - at);
      const path = file.webkitRelativePath || file.name;
      try {
        const type = FORMATS[file.name.split(".").at(-1)?.toLowerCase() ?? ""] ?? "text/csv";
        const one = await postFile<DatasetSummary>(`/datasets?device=${device}`, file, type);
        setUploaded((last) => [...last, one]);
      } catch (error) {
        setRefused((last) => [...last, `${path}: ${explain(error)}`]);
      }
    }
    setLeft(0);
  };
  const calibrate = async () => {
    if (!uploaded.length) return;
    try {
      await post<JobStatus>(`/devices/${device}/calibrations`, {
        datasets: uploaded.map((one) => one.id),
        drive: device,
      });
      onStarted();
    } catch (error) {
      setTrouble(explain(error));
    }
  };
  const sum = (of: "rows" | "warnings") => uploaded.reduce((all, one) => all + one[of], 0);
  const [rows, warnings] = [sum("rows"), sum("warnings")];
  return (
    <Group title="Calibrate a drive">
      <Select
        label="Model"
        value={device}
        choices={models(devices.value?.devices, device)}
        onChange={setDevice}
      />
      <div class="field">
        <label for="runs">Files</label>
        <input
          id="runs"
          type="file"
          multiple
          accept=".parquet,.csv,.json"
          onChange={(event) => take(event.currentTarget.files)}
        />
      </div>
      <div class="field">
        <label for="folder">or a folder</label>
        <input
          id="folder"
          type="file"
          multiple
          ref={(element) => element?.setAttribute("webkitdirectory", "")}
          onChange={(event) => take(event.currentTarget.files)}
        />
      </div>
      <p class="hint" role="status">
        {left > 0
          ? `uploading, ${left} to go`
          : uploaded.length > 0
            ? `${rows} rows were taken from ${files(uploaded.length)}, ${warnings} warnings`
            : "Parquet, CSV with the schema's fields as columns, or fio's JSON"}
      </p>
      {refused.length > 0 && (
        <div class="trouble" role="alert">
          {files(refused.length)} not read:
          <ul>
            {refused.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </div>
      )}
      {trouble && <Trouble text={trouble} />}
      <button type="button" onClick={calibrate} disabled={!uploaded.length || left > 0}>
        Calibrate on it
      </button>
    </Group>
  );
}

function files(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}
