// The answer: what to use, what it saves, the front, and what to know before acting on it.
import { useState } from "preact/hooks";
import { postPage } from "../api/client";
import type { Answer, Row } from "../api/types";
import { interval, quantity } from "../format";
import { fileName, SaveFile, save } from "../parts/save";
import { Commands } from "./commands";
import { describe } from "./configuration";
import { FrontChart } from "./front_chart";
import { CAPACITY, ENERGY, estimate, type Quantity, scopePower, TAIL } from "./quantities";
import { type Question, requestOf } from "./question";
import { Reasons } from "./reasons";
import { VerdictCard } from "./verdict_card";

/** Everything that the service said. */
export function AnswerView({ answer, question }: { answer: Answer; question: Question }) {
  return (
    <>
      <VerdictCard answer={answer} />
      <nav class="parts" aria-label="Parts of the answer">
        <a href="#front">Front</a>
        {answer.attribution && <a href="#why">Why</a>}
        {answer.measure_next && <a href="#measure">What to measure</a>}
        {answer.recommended && <a href="#commands">Apply</a>}
        <a href="#notes">Notes</a>
      </nav>
      <p class="actions">
        <SaveFile
          label="Save report"
          name={fileName(`${answer.workload} on ${answer.device}`, "html")}
          file={() => postPage("/recommend", requestOf(question))}
        />{" "}
        <button
          type="button"
          onClick={() =>
            save(
              fileName(answer.workload || "workload", "json"),
              JSON.stringify(question.profile, null, 2),
            )
          }
        >
          Save the workload profile
        </button>
      </p>
      <FrontChart answer={answer} />
      <FrontTable answer={answer} />
      <Reasons answer={answer} />
      {answer.recommended && <Commands answer={answer} question={question} />}
      <section aria-labelledby="notes">
        <h2 id="notes">Before acting on it</h2>
        <ul class="notes">
          {answer.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
        <p class="hint">
          {answer.counts.total.toLocaleString("en")} candidates,{" "}
          {answer.counts.feasible.toLocaleString("en")} meet the SLA, {answer.counts.on_front} on
          the Pareto front; profile version {answer.profile_version}, iojoule{" "}
          {answer.iojoule_version}
        </p>
      </section>
    </>
  );
}

function FrontTable({ answer }: { answer: Answer }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The front as a table ({answer.pareto.length} rows)</summary>
      {open && <FrontRows answer={answer} />}
    </details>
  );
}

function FrontRows({ answer }: { answer: Answer }) {
  const columns = [scopePower(answer), ENERGY, CAPACITY, TAIL];
  const rows: [string, Row][] = answer.pareto.map((row, index) => [`${index + 1}`, row]);
  if (answer.current) rows.unshift(["today", answer.current]);
  return (
    <section class="scroll" tabIndex={0} aria-label="The Pareto front">
      <table>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col">Configuration</th>
            {columns.map((one) => (
              <th scope="col" key={one.key}>
                {one.title}
              </th>
            ))}
            <th scope="col">Evidence</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, row]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{describe(row.configuration)}</td>
              {columns.map((one) => (
                <Cell key={one.key} row={row} of={one} />
              ))}
              <td>{estimate(row, columns[0] as Quantity)?.evidence ?? "unknown"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Cell({ row, of }: { row: Row; of: Quantity }) {
  const found = estimate(row, of);
  if (!found) return <td>unknown</td>;
  return (
    <td>
      {quantity(found.value, of.unit)} <small>{interval(found, of.unit)}</small>
    </td>
  );
}
