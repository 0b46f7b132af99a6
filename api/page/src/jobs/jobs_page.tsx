// Jobs: what runs, how far it is, and what came of it.

import { useCallback, useEffect, useState } from "preact/hooks";
import { explain, get, getPage, post } from "../api/client";
import type { JobStatus } from "../api/types";
import { Trouble } from "../parts/loading";
import { fileName, SaveFile } from "../parts/save";
import { Table } from "../parts/table";
import { ENDED, type Seen, useLive, useLog } from "./live";
import { NewJobs } from "./new_jobs";

/** The newest jobs, followed as they go on. */
export function JobsPage() {
  const [jobs, setJobs] = useState<JobStatus[] | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const load = useCallback(() => {
    get<{ jobs: JobStatus[] }>("/jobs?limit=50")
      .then((found) => {
        setJobs(found.jobs);
        setTrouble(null);
      })
      .catch((error: unknown) => setTrouble(explain(error)));
  }, []);
  useEffect(load, [load]);
  return (
    <section>
      <h1>Jobs</h1>
      <p>Jobs run in the service: this page can be left, and shows them again.</p>
      <NewJobs onStarted={load} />
      {trouble && <Trouble text={trouble} />}
      {jobs?.length === 0 && <p>Nothing was started yet.</p>}
      {jobs && jobs.length > 0 && (
        <Table heads={["What", "State", "Progress", "Started", "Result"]}>
          {jobs.map((job) => (
            <JobRow key={job.id} first={job} />
          ))}
        </Table>
      )}
    </section>
  );
}

function JobRow({ first }: { first: JobStatus }) {
  const job = useLive(first);
  const [trouble, setTrouble] = useState<string | null>(null);
  const log = useLog(job);
  const over = ENDED.has(job.state);
  const cancel = () => {
    post<JobStatus>(`${job.url}/cancel`, {}).catch((error: unknown) => setTrouble(explain(error)));
  };
  return (
    <tr>
      <th scope="row">
        {job.kind} <small>{job.id}</small>
      </th>
      <td>
        {job.state}
        {job.attempt > 1 ? `, attempt ${job.attempt}` : ""}
        {job.error && <Trouble text={job.error.detail} />}
        {trouble && <Trouble text={trouble} />}
        <Details job={job} log={log} />
      </td>
      <td>
        <progress max={1} value={job.progress} aria-label={`progress of ${job.kind} ${job.id}`} />
        <small>
          {Math.round(job.progress * 100)} % {job.stage ?? ""}
        </small>
      </td>
      <td>{new Date(job.created_at).toLocaleString()}</td>
      <td>
        {job.result_url && <Result url={job.result_url} job={job} />}
        {!over && (
          <button type="button" onClick={cancel} disabled={job.cancel_requested}>
            {job.cancel_requested ? "Ending" : "Cancel"}
          </button>
        )}
      </td>
    </tr>
  );
}

function Details({ job, log }: { job: JobStatus; log: Seen[] }) {
  const time = (text: string | null) => (text ? new Date(text).toLocaleString() : "not yet");
  return (
    <details class="table">
      <summary>Log</summary>
      <p class="hint">
        created {time(job.created_at)}, started {time(job.started_at)}, finished{" "}
        {time(job.finished_at)}
      </p>
      <ol class="log">
        {log.map((one) => (
          <li key={`${one.at.getTime()} ${one.text}`}>
            <small>{one.at.toLocaleTimeString()}</small> {one.text}
          </li>
        ))}
      </ol>
      <pre tabIndex={0}>{JSON.stringify(job.request, null, 1)}</pre>
    </details>
  );
}

function Result({ url, job }: { url: string; job: JobStatus }) {
  const name = `${job.kind} ${job.id}`;
  const json = async () => new Blob([JSON.stringify(await get<unknown>(url), null, 2)]);
  return (
    <>
      <SaveFile label="Save JSON" name={fileName(name, "json")} file={json} />
      {job.kind === "what-if" && (
        <SaveFile label="Save report" name={fileName(name, "html")} file={() => getPage(url)} />
      )}
    </>
  );
}
