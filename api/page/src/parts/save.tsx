// What the reader takes along as a file.
import { useState } from "preact/hooks";
import { explain } from "../api/client";
import { Trouble } from "./loading";

/** Let the browser save something as a file. */
export function save(name: string, content: Blob | string, type = "application/json"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(
    content instanceof Blob ? content : new Blob([content], { type }),
  );
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** A name as files can have it. */
export function fileName(name: string, ending: string): string {
  return `${name.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "iojoule"}.${ending}`;
}

/** A button that asks the service for a file and saves it. */
export function SaveFile(props: { label: string; name: string; file: () => Promise<Blob> }) {
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<string | null>(null);
  const take = async () => {
    setBusy(true);
    try {
      save(props.name, await props.file());
      setTrouble(null);
    } catch (error) {
      setTrouble(explain(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" onClick={take} disabled={busy}>
        {busy ? "Writing it" : props.label}
      </button>
      {trouble && <Trouble text={trouble} />}
    </>
  );
}
