// The service's key, asked for only where the service wants one.
import { useEffect, useState } from "preact/hooks";
import { KEY_WANTED, storeKey } from "../api/client";

/** A field for the key, from the moment that the service refuses without. */
export function KeyForm() {
  const [wanted, setWanted] = useState(false);
  const [key, setKey] = useState("");
  useEffect(() => {
    const ask = () => setWanted(true);
    addEventListener(KEY_WANTED, ask);
    return () => removeEventListener(KEY_WANTED, ask);
  }, []);
  if (!wanted) return null;
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        storeKey(key.trim());
        location.reload();
      }}
    >
      <label for="key">This service wants a key (iojoule key create):</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        value={key}
        onInput={(event) => setKey(event.currentTarget.value)}
      />
      <button type="submit">Use it</button>
    </form>
  );
}
