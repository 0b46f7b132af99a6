// Starts what takes long: measurements that are uploaded, and a calibration on them.
import { useState } from "preact/hooks";
import { explain, post } from "../api/client";
import type { DatasetSummary, DeviceSummary, JobStatus } from "../api/types";
import { models } from "../drives/models";
import { Group, Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { leftOut, uploadFile, uploadFolder } from "./upload";

const NAMES_SHOWN = 3;

/** Upload runs of a drive and calibrate its profile on them. */
export function NewJobs({ onStarted }: { onStarted: () => void }) {
  const devices = useResource<{ devices: DeviceSummary[] }>("/devices");
  const [device, setDevice] = useState("samsung-980-pro-1tb");
  const [uploaded, setUploaded] = useState<DatasetSummary[]>([]);
  const [refused, setRefused] = useState<string[]>([]);
  const [left, setLeft] = useState(0);
  const [trouble, setTrouble] = useState<string | null>(null);
  const begin = (files: number) => {
    setTrouble(null);
    setUploaded([]);
    setRefused([]);
    setLeft(files);
  };
  const refuse = (what: string) => setRefused((last) => [...last, what]);
  const takeFiles = async (files: FileList | null) => {
    if (!files?.length) return;
    begin(files.length);
    for (const file of files) {
      try {
        const one = await uploadFile(device, file);
        setUploaded((last) => [...last, one]);
      } catch (error) {
        refuse(`${file.name}: ${explain(error)}`);
      }
      setLeft((last) => last - 1);
    }
  };
  const takeFolder = async (files: FileList | null) => {
    if (!files?.length) return;
    begin(files.length);
    try {
      const one = await uploadFolder(device, [...files]);
      setUploaded([one]);
      for (const [reason, sources] of await leftOut(one))
        refuse(`${names([...sources])}: ${reason}`);
    } catch (error) {
      setTrouble(explain(error));
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
          accept=".parquet,.csv,.json,.zip"
          onChange={(event) => takeFiles(event.currentTarget.files)}
        />
      </div>
      <div class="field">
        <label for="folder">or a folder of fio's results</label>
        <input
          id="folder"
          type="file"
          multiple
          ref={(element) => element?.setAttribute("webkitdirectory", "")}
          onChange={(event) => takeFolder(event.currentTarget.files)}
        />
      </div>
      <p class="hint" role="status">
        {left > 0
          ? `uploading, ${left} to go`
          : uploaded.length > 0
            ? `${rows} rows were taken, ${warnings} warnings`
            : "Parquet, CSV with the schema's fields as columns, or what fio writes"}
      </p>
      {refused.length > 0 && (
        <div class="trouble" role="alert">
          Left out:
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

function names(sources: string[]): string {
  const more = sources.length - NAMES_SHOWN;
  const shown = sources.slice(0, NAMES_SHOWN).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
