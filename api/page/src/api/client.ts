// Speaks to the service's public API and to nothing else.
import type { components } from "./schema";

type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

/** An answer that is an error: what the service says of it, field by field where it knows. */
export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

/** Told to the window when the service wants a key, or another one. */
export const KEY_WANTED = "iojoule-key-wanted";
const KEY = "iojoule-key";

/** The key that was typed in, until the tab is closed. */
export function storedKey(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Use a key from now on. */
export function storeKey(key: string): void {
  sessionStorage.setItem(KEY, key);
}

/** GET a resource. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return read<T>(
    await fetch(path, { headers: headers({ Accept: "application/json" }), ...given(signal) }),
  );
}

/** POST a question as JSON. */
export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return read<T>(
    await fetch(path, {
      method: "POST",
      headers: headers({ "Content-Type": "application/json", Accept: "application/json" }),
      body: JSON.stringify(body),
      ...given(signal),
    }),
  );
}

/** What the service says as a page of its own: a report, a model card. */
export async function getPage(path: string): Promise<Blob> {
  return blob(await fetch(path, { headers: headers({ Accept: "text/html" }) }));
}

/** Likewise the answer to a question. */
export async function postPage(path: string, body: unknown): Promise<Blob> {
  return blob(
    await fetch(path, {
      method: "POST",
      headers: headers({ "Content-Type": "application/json", Accept: "text/html" }),
      body: JSON.stringify(body),
    }),
  );
}

/** POST a file's text as it is. */
export async function postText<T>(path: string, text: string): Promise<T> {
  return read<T>(
    await fetch(path, {
      method: "POST",
      headers: headers({ "Content-Type": "text/plain" }),
      body: text,
    }),
  );
}

/** POST a file as it is. */
export async function postFile<T>(path: string, file: Blob, type: string): Promise<T> {
  return read<T>(
    await fetch(path, { method: "POST", headers: headers({ "Content-Type": type }), body: file }),
  );
}

function given(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}

function headers(own: Record<string, string>): Record<string, string> {
  const key = storedKey();
  return key ? { ...own, Authorization: `Bearer ${key}` } : own;
}

async function read<T>(response: Response): Promise<T> {
  return (await (await checked(response)).json()) as T;
}

async function blob(response: Response): Promise<Blob> {
  return (await checked(response)).blob();
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  if (response.status === 401) dispatchEvent(new Event(KEY_WANTED));
  throw new ProblemError(await problemOf(response));
}

async function problemOf(response: Response): Promise<Problem> {
  if (response.headers.get("Content-Type")?.includes("json")) {
    return (await response.json()) as Problem;
  }
  return {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `the service answered ${response.status}`,
    instance: response.url,
    field: null,
    errors: null,
  };
}

/** Whether an error only says that a newer question took its place. */
export function isSuperseded(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The path of a field as words: its last part, and what it is a part of. */
function inWords(field: string): string {
  const parts = field.split(/[/.]/).filter((part) => part && part !== "workload_profile");
  return parts.slice(-2).join(", ").replaceAll("_", " ");
}

/** A message without the path of the field at its beginning. */
function withoutPath(detail: string): string {
  return detail.replace(/^[a-z_0-9./]+: /, "");
}

/** What an error says about fields of the request. */
export function fieldsOf(error: unknown): readonly Schemas["FieldProblem"][] {
  if (!(error instanceof ProblemError)) return [];
  return (error.problem.errors ?? []).map((one) => ({
    field: one.field,
    detail: withoutPath(one.detail),
  }));
}

/** An error as a reader can use it. */
export function explain(error: unknown): string {
  if (error instanceof ProblemError) {
    const { field } = error.problem;
    return field ? `${inWords(field)}: ${withoutPath(error.message)}` : error.message;
  }
  if (error instanceof TypeError) return "the service cannot be reached; is it still running?";
  return String(error);
}
