// The answer: what to use, what it saves, the front, and what to know before acting on it.
import { useState } from "preact/hooks";
import { postPage } from "../api/client";
import type { Answer, Row, Shortfall } from "../api/types";
import { interval, quantity } from "../format";
import { fileName, SaveFile, save } from "../parts/save";
import { Commands } from "./commands";
import { describe, word } from "./configuration";
import { FrontChart } from "./front_chart";
import { CAPACITY, ENERGY, estimate, type Quantity, scopePower, TAIL } from "./quantities";
import type { Question } from "./question";
import { Reasons } from "./reasons";

/** Everything that the service said. */
export function AnswerView({ answer, question }: { answer: Answer; question: Question }) {
  return (
    <>
      <Headline answer={answer} />
      <p>
        <SaveFile
          label="Save report"
          name={fileName(`${answer.workload} on ${answer.device}`, "html")}
          file={() =>
            postPage("/recommend", { device: question.device, workload_profile: question.profile })
          }
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

function Headline({ answer }: { answer: Answer }) {
  const { recommended, saving } = answer;
  if (!recommended) return <Infeasible answer={answer} />;
  const head = {
    change: "Change to ",
    "no change": "No change: ",
    ranking: `Lowest expected ${word(answer.ranked_by)}: `,
    none: "",
  };
  return (
    <section class="headline" aria-labelledby="headline">
      <h2 id="headline">
        {head[answer.action]}
        {describe(recommended.configuration)}
      </h2>
      {saving && answer.action === "change" && (
        <p>
          <strong class={saving.verdict === "proven" ? "saving large" : "saving"}>
            {quantity(saving.percent.value, "%")}
          </strong>{" "}
          less energy than today for the same work (90 % interval: {interval(saving.percent, "%")});{" "}
          {quantity(saving.watts.value, "W")}, {quantity(saving.kwh_per_year.value, "kWh")} a year.
        </p>
      )}
      {saving && (
        <p class={`verdict ${saving.verdict}`}>
          <b>{saving.verdict}</b>
          {answer.action === "change" &&
            `: saves with a probability of ${saving.probability.toFixed(2)}`}
        </p>
      )}
      {answer.not_taken && (
        <p class="hint">
          not taken: {describe(answer.not_taken.row.configuration)}, which saves{" "}
          {quantity(answer.not_taken.objective_saved_percent, "%")} in expectation
          {answer.not_taken.saving &&
            `, with a probability of ${answer.not_taken.saving.probability.toFixed(2)}`}
        </p>
      )}
      <p class="hint">
        today:{" "}
        {answer.current ? describe(answer.current.configuration) : "not stated, so no saving"}
      </p>
    </section>
  );
}

function Infeasible({ answer }: { answer: Answer }) {
  return (
    <section class="headline" aria-labelledby="headline">
      <h2 id="headline">
        {answer.reason_code === "not_shown_to_hold"
          ? "No configuration is shown to keep this SLA"
          : "No configuration keeps this SLA"}
      </h2>
      <p>The nearest misses:</p>
      <ul>
        {answer.nearest_misses.map((miss) => (
          <li key={describe(miss.row.configuration)}>
            {describe(miss.row.configuration)}: {miss.shortfalls.map(short).join(", ")}
          </li>
        ))}
      </ul>
      {answer.relaxations.length > 0 && (
        <>
          <p>One of these alone would be enough:</p>
          <ul>
            {answer.relaxations.map((one) => (
              <li key={one.bound}>
                {word(one.bound)} relaxed by {quantity(one.by_percent, "%")}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function short(one: Shortfall): string {
  return one.unknown
    ? `${one.bound} is not shown to hold`
    : `misses ${one.bound} by ${quantity(one.missed_by_percent, "%")}`;
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
