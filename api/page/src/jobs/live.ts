// A job as it goes on, from the service's events.
import { useEffect, useState } from "preact/hooks";
import { get, storedKey } from "../api/client";
import type { JobStatus } from "../api/types";

export const ENDED: ReadonlySet<string> = new Set(["done", "failed", "cancelled"]);
const NAMES = ["queued", "running", ...ENDED];

/** A change of a job, as it was seen here. */
export interface Seen {
  at: Date;
  text: string;
}

/** What a job did while the page listened, one line for each new stage or state. */
export function useLog(job: JobStatus): Seen[] {
  const [log, setLog] = useState<Seen[]>([]);
  const text = [job.state, job.stage].filter(Boolean).join(": ");
  useEffect(() => setLog((last) => [...last, { at: new Date(), text }].slice(-LINES)), [text]);
  return log;
}

const LINES = 200;

/** The job as it is now; listens until it is over. */
export function useLive(first: JobStatus): JobStatus {
  const [job, setJob] = useState(first);
  useEffect(() => {
    setJob(first);
    if (ENDED.has(first.state)) return;
    if (storedKey()) return poll(first, setJob); // an EventSource cannot bring a key along
    const events = new EventSource(first.events_url);
    const take = (event: MessageEvent<string>) => {
      const now = JSON.parse(event.data) as JobStatus;
      setJob(now);
      if (ENDED.has(now.state)) events.close();
    };
    for (const name of NAMES) events.addEventListener(name, take);
    return () => events.close();
  }, [first]);
  return job;
}

const POLL_MS = 1000;

function poll(first: JobStatus, take: (job: JobStatus) => void): () => void {
  const timer = setInterval(async () => {
    const job = await get<JobStatus>(first.url);
    take(job);
    if (ENDED.has(job.state)) clearInterval(timer);
  }, POLL_MS);
  return () => clearInterval(timer);
}
