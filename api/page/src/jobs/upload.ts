// Uploads measurements: a file as it is, a folder of fio's results as one archive.
import { Zip, ZipDeflate } from "fflate";
import { get, postFile } from "../api/client";
import type { DatasetSummary } from "../api/types";

const FORMATS: Record<string, string> = {
  parquet: "application/vnd.apache.parquet",
  csv: "text/csv",
  json: "application/json",
  zip: "application/zip",
};

/** Upload one file; its ending tells its format. */
export async function uploadFile(device: string, file: File): Promise<DatasetSummary> {
  const ending = file.name.split(".").at(-1)?.toLowerCase() ?? "";
  return send(device, file, FORMATS[ending] ?? "text/csv");
}

/** Upload the files of a folder together, so that the service reads it as a folder. */
export async function uploadFolder(device: string, files: File[]): Promise<DatasetSummary> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const archive = new Zip((error, part) => {
    if (error) throw error;
    parts.push(part as Uint8Array<ArrayBuffer>);
  });
  for (const file of files) {
    const entry = new ZipDeflate(file.webkitRelativePath || file.name);
    archive.add(entry);
    entry.push(new Uint8Array(await file.arrayBuffer()), true);
  }
  archive.end();
  return send(device, new Blob(parts), "application/zip");
}

async function send(device: string, body: Blob, type: string): Promise<DatasetSummary> {
  return postFile<DatasetSummary>(`/datasets?device=${device}`, body, type);
}

interface Sidecar {
  provenance: { excluded: { source: string; reason: string }[] };
}

/** What was left out of a dataset: each reason, and where. */
export async function leftOut(dataset: DatasetSummary): Promise<Map<string, Set<string>>> {
  const { provenance } = await get<Sidecar>(dataset.sidecar_url);
  const sources = new Map<string, Set<string>>();
  for (const { reason, source } of provenance.excluded) {
    sources.set(reason, (sources.get(reason) ?? new Set()).add(source));
  }
  return sources;
}
