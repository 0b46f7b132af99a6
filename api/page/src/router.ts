// Where the page is: a place below /ui/ and what is asked there, both in the address.
import { useEffect, useState } from "preact/hooks";

const ROOT = "/ui/";

/** Writing the address takes a browser as long as drawing, so it waits until nothing moves. */
const REST_MS = 250;

export interface Place {
  path: string;
  query: URLSearchParams;
  /** Another number at each move through the history, also back to an address seen before. */
  visit: number;
}

let visits = 0;

/** The address that is shown; a link to a part of it moves nowhere. */
let shown = location.pathname + location.search;

function here(): Place {
  return {
    path: location.pathname.slice(ROOT.length).replace(/\/$/, ""),
    query: new URLSearchParams(location.search),
    visit: visits,
  };
}

/** The present place; renders anew when it changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => {
      const now = location.pathname + location.search;
      if (now === shown) return;
      shown = now;
      visits += 1;
      clearTimeout(timer);
      unwritten = null; // it belongs to the entry that was left
      setPlace(here());
    };
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

/** The last query of each page, so that a link back to it asks the same again. */
const QUERIES = "iojoule-query ";

/** The address of a page with what was last asked there. */
export function lastAddress(path: string): string {
  return `${ROOT}${path}${sessionStorage.getItem(QUERIES + path) ?? ""}`;
}

/** Keep what is asked in the address without a new entry in the history. */
export function remember(query: Record<string, string>): void {
  unwritten = address(here().path, query);
  keep(unwritten);
  clearTimeout(timer);
  timer = setTimeout(write, REST_MS);
}

/** A new entry in the history, from which Back returns to the page as it was. */
export function advance(query: Record<string, string>): void {
  write();
  const to = address(here().path, query);
  keep(to);
  history.pushState(null, "", to);
  shown = location.pathname + location.search;
}

function keep(to: string): void {
  try {
    sessionStorage.setItem(QUERIES + here().path, new URL(to, location.href).search);
  } catch {
    // the tab's storage is full: the address itself still holds it
  }
}

function write(): void {
  clearTimeout(timer);
  if (unwritten?.split("?")[0] === location.pathname) {
    history.replaceState(null, "", unwritten);
    shown = location.pathname + location.search;
  }
  unwritten = null;
}
