// Something that comes from the service once.
import { useEffect, useState } from "preact/hooks";
import { explain, get, isSuperseded } from "../api/client";

export interface Loaded<T> {
  value: T | null;
  trouble: string | null;
}

/** A resource of the service; null until it is there. */
export function useResource<T>(path: string | null): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ value: null, trouble: null });
  useEffect(() => {
    if (path === null) return;
    const control = new AbortController();
    get<T>(path, control.signal)
      .then((value) => setLoaded({ value, trouble: null }))
      .catch((error: unknown) => {
        if (!isSuperseded(error)) setLoaded({ value: null, trouble: explain(error) });
      });
    return () => control.abort();
  }, [path]);
  return loaded;
}

/** What went wrong, said aloud by screen readers. */
export function Trouble({ text }: { text: string }) {
  return (
    <p class="trouble" role="alert">
      {text}
    </p>
  );
}
