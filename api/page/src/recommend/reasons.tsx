// Why this answer: what each knob brings, what each bound costs, and what would make it surer.

import type { Answer, BoundSlack, BoundStep, KnobEffect } from "../api/types";
import { amount, interval, plain, quantity } from "../format";
import { Copyable } from "../parts/copy";
import { Table } from "../parts/table";
import { describe, word } from "./configuration";

/** The reasons that the service gives; nothing where it gives none. */
export function Reasons({ answer }: { answer: Answer }) {
  return (
    <>
      {answer.attribution && <Knobs effects={answer.attribution.knobs} />}
      {answer.bounds.length > 0 && <Bounds bounds={answer.bounds} />}
      {answer.measure_next && answer.measure_next.runs.length > 0 && (
        <section aria-labelledby="measure">
          <h2 id="measure">What to measure</h2>
          <p>
            The saving is known to ±{quantity(answer.measure_next.half_percent, "%")}. Measuring
            narrows it most in this order:
          </p>
          <ol>
            {answer.measure_next.runs.map((run) => (
              <li key={describe(run.configuration)}>
                {run.role}: {describe(run.configuration)}; then ±{quantity(run.half_percent, "%")}
                {run.proves ? ", proven" : ""}
              </li>
            ))}
          </ol>
          <Copyable label="the command that measures it" text={answer.measure_next.command} />
        </section>
      )}
    </>
  );
}

function Knobs({ effects }: { effects: KnobEffect[] }) {
  const most = Math.max(...effects.map((one) => Math.abs(amount(one.share_percent.value))), 1e-9);
  return (
    <section aria-labelledby="why">
      <h2 id="why">Why</h2>
      <Table heads={["Knob", "Today", "Then", "Brings", "Alone"]}>
        {effects.map((one) => (
          <tr key={one.knobs.join()}>
            <th scope="row">{one.knobs.map(word).join(", ")}</th>
            <td>{Object.values(one.before).map(String).join(", ")}</td>
            <td>{Object.values(one.after).map(String).join(", ")}</td>
            <td>
              <svg class="share" viewBox="0 0 100 8" aria-hidden="true">
                <rect width={(100 * Math.abs(amount(one.share_percent.value))) / most} height="8" />
              </svg>
              {quantity(one.share_percent.value, "%")}{" "}
              <small>{interval(one.share_percent, "%")}</small>
            </td>
            <td>{one.alone_percent ? quantity(one.alone_percent.value, "%") : "impossible"}</td>
          </tr>
        ))}
      </Table>
      <p class="hint">
        Percent of today's energy. Brings: the fair share over all orders of changing them (Shapley
        value); alone: with nothing else changed.
      </p>
    </section>
  );
}

function Bounds({ bounds }: { bounds: BoundSlack[] }) {
  return (
    <section aria-labelledby="bounds">
      <h2 id="bounds">What bounds cost</h2>
      <Table heads={["Bound", "Left", "10 % looser", "10 % tighter", "Without"]}>
        {bounds.map((one) => (
          <tr key={one.bound} class={one.binds ? "binds" : ""}>
            <th scope="row">
              {word(one.bound)}
              {one.binds ? " (binds)" : ""}
            </th>
            <td>{one.slack_percent === null ? "all" : quantity(one.slack_percent, "%")}</td>
            <td>{change(one.looser)}</td>
            <td>{change(one.tighter)}</td>
            <td>{change(one.without)}</td>
          </tr>
        ))}
      </Table>
      <p class="hint">
        Change of the least objective that any candidate has; below zero is a gain.
      </p>
    </section>
  );
}

function change(step: BoundStep | null): string {
  if (!step) return "";
  if (step.configuration === null) return "no configuration";
  const percent = step.objective_change_percent ?? 0;
  return Math.abs(percent) < 0.05 ? "no change" : `${percent > 0 ? "+" : ""}${plain(percent)} %`;
}
