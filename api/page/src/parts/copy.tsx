// Text to take along.
import { useState } from "preact/hooks";

/** A command with a button that puts it on the clipboard. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <div class="copyable">
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={copy} aria-label={`Copy ${label}`}>
        {done ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
