// Where the page is: a place below /ui/ and what is asked there, both in the address.
import { useEffect, useState } from "preact/hooks";

const ROOT = "/ui/";

/** Writing the address takes a browser as long as drawing, so it waits until nothing moves. */
const REST_MS = 250;

export interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  return {
    path: location.pathname.slice(ROOT.length).replace(/\/$/, ""),
    query: new URLSearchParams(location.search),
  };
}

/** The present place; renders anew when it changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return place;
}

/** The address of a place. */
export function address(path: string, query?: Record<string, string>): string {
  const asked = new URLSearchParams(query).toString();
  return `${ROOT}${path}${asked ? `?${asked}` : ""}`;
}

/** Go to a place, as a link would. */
export function go(to: string): void {
  write();
  history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
}

let unwritten: string | null = null;
let timer = 0;

/** Keep what is asked in the address without a new entry in the history. */
export function remember(query: Record<string, string>): void {
  const asked = new URLSearchParams(query).toString();
  unwritten = `${location.pathname}${asked ? `?${asked}` : ""}`;
  clearTimeout(timer);
  timer = setTimeout(write, REST_MS);
}

function write(): void {
  clearTimeout(timer);
  if (unwritten?.split("?")[0] === location.pathname) history.replaceState(null, "", unwritten);
  unwritten = null;
}
