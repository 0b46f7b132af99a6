// What is asked: a drive and a workload profile; kept in the address so that a link asks it again.
import type { Sla, WorkloadProfile } from "../api/types";

export interface Question {
  device: string;
  profile: WorkloadProfile;
  /** In whose settings the answer is stated too, as `postgresql=17`. */
  settings?: string | undefined;
}

/** The question as the service takes it. */
export function requestOf(question: Question): Record<string, unknown> {
  const { device, profile, settings } = question;
  return { device, workload_profile: profile, ...(settings ? { settings } : {}) };
}

/** What a link asks; `trouble` where it asks something that cannot be read. */
export interface Linked {
  question: Question | null;
  trouble: string | null;
}

/** The question of a link; null where the link asks none. */
export function fromAddress(query: URLSearchParams): Linked {
  const text = query.get("profile");
  if (text === null) return { question: null, trouble: null };
  const trouble = "The workload in this address cannot be read, so nothing was asked: ";
  try {
    const profile = JSON.parse(text) as WorkloadProfile | null;
    if (typeof profile?.workload !== "object" || profile.workload === null)
      return { question: null, trouble: `${trouble}it has no field "workload".` };
    const device = query.get("device") ?? FIRST_DEVICE;
    return {
      question: { device, profile, settings: query.get("settings") ?? undefined },
      trouble: null,
    };
  } catch (error) {
    return { question: null, trouble: `${trouble}${(error as Error).message}.` };
  }
}

/** The question as the query of a link. */
export function toAddress(question: Question): Record<string, string> {
  const { device, profile, settings } = question;
  return { device, profile: JSON.stringify(profile), ...(settings ? { settings } : {}) };
}

/** The bounds of a profile as fields; the service turns an SLA in words into them. */
export function slaOf(profile: WorkloadProfile): Partial<Sla> {
  return typeof profile.sla === "object" && profile.sla !== null ? profile.sla : {};
}

/** A profile with other bounds; a bound of null is no bound. */
export function withSla(profile: WorkloadProfile, changes: Partial<Sla>): WorkloadProfile {
  const sla: Record<string, unknown> = { ...slaOf(profile), ...changes };
  for (const [name, value] of Object.entries(sla)) {
    if (value === null || value === undefined) delete sla[name];
  }
  return { ...profile, sla: sla as Sla };
}

/** A profile whose workload says something else; null takes a statement back. */
export function withWorkload(
  profile: WorkloadProfile,
  changes: Record<string, unknown>,
): WorkloadProfile {
  return { ...profile, workload: merged(profile.workload, changes) as WorkloadProfile["workload"] };
}

/** A profile under which something else runs today. */
export function withCurrent(
  profile: WorkloadProfile,
  changes: Record<string, unknown>,
): WorkloadProfile {
  return {
    ...profile,
    current: merged(profile.current ?? {}, changes) as NonNullable<WorkloadProfile["current"]>,
  };
}

/** A profile with another price or carbon intensity. */
export function withFactors(
  profile: WorkloadProfile,
  changes: Record<string, unknown>,
): WorkloadProfile {
  const { factors, ...rest } = profile;
  const all = merged(factors ?? {}, changes);
  return (Object.keys(all).length ? { ...rest, factors: all } : rest) as WorkloadProfile;
}

function merged(object: object, changes: Record<string, unknown>): object {
  const all: Record<string, unknown> = { ...object, ...changes };
  for (const [name, value] of Object.entries(all)) {
    if (value === null || value === undefined) delete all[name];
  }
  return all;
}

/** The drive with the most measurements. */
export const FIRST_DEVICE = "samsung-980-pro-1tb";

/** A demand, as a first question of somebody who describes a workload. */
export const FIRST_PROFILE: WorkloadProfile = {
  name: "my workload",
  workload: {
    operation: "read",
    pattern: "random",
    useful_request_bytes: 4096,
    demand_operations_per_second: 100000,
    arrival_process: "poisson",
  },
  current: { engine: "io_uring", completion: "polled", queue_depth: 8, jobs: 8 },
  sla: { latency_p99_ns_max: 250e3 },
} as WorkloadProfile;
