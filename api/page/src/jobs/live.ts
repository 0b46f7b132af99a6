// A job as it goes on, from the service's events.
import { useEffect, useState } from "preact/hooks";
import type { JobStatus } from "../api/types";

export const ENDED: ReadonlySet<string> = new Set(["done", "failed", "cancelled"]);
const NAMES = ["queued", "running", ...ENDED];

/** The job as it is now; listens until it is over. */
export function useLive(first: JobStatus): JobStatus {
  const [job, setJob] = useState(first);
  useEffect(() => {
    setJob(first);
    if (ENDED.has(first.state)) return;
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
