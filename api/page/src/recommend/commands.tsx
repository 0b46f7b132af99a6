// What to type to get the same answer elsewhere, and to put it into effect.
import type { Answer } from "../api/types";
import { Copyable } from "../parts/copy";
import { fileName, save } from "../parts/save";
import { differences, word } from "./configuration";
import { type Question, requestOf } from "./question";

/** Commands to copy, and what they would change. */
export function Commands({ answer, question }: { answer: Answer; question: Question }) {
  const changed = answer.recommended
    ? differences(
        answer.current?.configuration ?? answer.recommended.configuration,
        answer.recommended.configuration,
      )
    : [];
  const file = fileName(answer.workload || "workload", "json");
  const asked = requestOf(question);
  return (
    <section aria-labelledby="commands">
      <h2 id="commands">Put it into effect</h2>
      {changed.length === 0 ? (
        <p>Nothing changes: what runs today stays.</p>
      ) : (
        <ul>
          {changed.map(([name, now, then]) => (
            <li key={name}>
              {word(name)}: {now} to <b>{then}</b>
            </li>
          ))}
        </ul>
      )}
      {answer.settings && <Settings found={answer.settings} />}
      <p>
        <button type="button" onClick={() => save("answer.json", JSON.stringify(answer, null, 2))}>
          Save this answer
        </button>
      </p>
      <Copyable
        label="the command that asks the same"
        text={`iojoule recommend --device ${question.device} --workload ${file} -o json > answer.json`}
      />
      <Copyable
        label="the command that shows and sets it"
        text="iojoule apply --recommendation answer.json --drive /dev/nvme0n1"
      />
      <Copyable
        label="the request to the service"
        text={`curl -s ${location.origin}/recommend -H 'Content-Type: application/json' -d '${JSON.stringify(
          asked,
        ).replaceAll("'", "'\\''")}'`}
      />
    </section>
  );
}

/** The recommended configuration in the settings of an application. */
function Settings({ found }: { found: NonNullable<Answer["settings"]> }) {
  return (
    <>
      <h3>
        {found.title} {found.version}: {found.file}
      </h3>
      <Copyable label={`the settings of ${found.title}`} text={found.text} />
    </>
  );
}
