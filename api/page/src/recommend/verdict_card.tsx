// The verdict first: what to change, what it saves, whether it is safe, what to do next.
import type { Answer, Row, Summary } from "../api/types";
import { amount, interval, quantity } from "../format";
import { Copyable } from "../parts/copy";
import { fileName } from "../parts/save";
import { describe, word } from "./configuration";

const KINDS: Record<Summary["verdict"], string> = {
  proven: "Change: the saving is proven",
  expected: "Change: a saving is expected",
  measure_first: "Possible change: measure first",
  costs_more: "Change: required by the SLA, costs more",
  unquantified: "Change: the saving is unknown",
  no_change: "No change: nothing to gain is shown",
  ranking: "Best configuration: today's is not stated",
  not_shown_to_hold: "No configuration is shown to keep this SLA",
  demand_exceeds_capacity: "No configuration serves this demand",
  infeasible: "No configuration keeps this SLA",
};

/** The answer in brief; every kind of answer has the same form. */
export function VerdictCard({ answer }: { answer: Answer }) {
  const { summary } = answer;
  const command = summary.next.command.replace("FILE", fileName(answer.workload, "json"));
  return (
    <section class={`headline ${summary.verdict}`} aria-labelledby="headline">
      <h2 id="headline">{KINDS[summary.verdict]}</h2>
      <p class="sentence">{summary.sentence}</p>
      {summary.saving && <Saved answer={answer} />}
      <dl class="facts">
        <div>
          <dt>Safety</dt>
          <dd class="safe">
            {summary.safe === null ? summary.safety : <Safety summary={summary} />}
          </dd>
        </div>
        {summary.would_change && (
          <div>
            <dt>What would change this</dt>
            <dd>{summary.would_change}</dd>
          </div>
        )}
        <div>
          <dt>Today</dt>
          <dd class="now">{answer.current ? at(answer.current) : "not stated, so no saving"}</dd>
        </div>
        <div>
          <dt>Next</dt>
          <dd>
            {summary.next.sentence}
            <Copyable label="the next command" text={command} />
          </dd>
        </div>
      </dl>
      {answer.nearest_misses.length > 0 && <Misses answer={answer} />}
    </section>
  );
}

function at(row: Row): string {
  return describe(row.configuration);
}

function Safety({ summary }: { summary: Summary }) {
  const [first, ...rest] = summary.safety.split(": ");
  return (
    <>
      <b class={summary.safe ? "yes" : "no"}>{first}</b>
      {rest.length > 0 && `: ${rest.join(": ")}`}
    </>
  );
}

const WIDTH = 300;

/** The saving as an interval on a line with zero, its probability, and the year. */
function Saved({ answer }: { answer: Answer }) {
  const percent = answer.summary.saving?.percent;
  if (!percent) return null;
  const { saving } = answer;
  const [low, high] = [amount(percent.low), amount(percent.high)];
  const ends = [Math.min(low, 0), Math.max(high, 0)].map((one) =>
    Number.isFinite(one) ? one : amount(percent.value),
  ) as [number, number];
  const x = (value: number) =>
    8 +
    ((WIDTH - 16) * (Math.min(Math.max(value, ends[0]), ends[1]) - ends[0])) /
      (ends[1] - ends[0] || 1);
  const probability = answer.summary.saving?.probability ?? 0;
  const year = [
    quantity(saving?.kwh_per_year.value ?? 0, "kWh"),
    saving?.cost_per_year &&
      `${money(saving.cost_per_year.value)} ${answer.factors.currency ?? ""}`.trim(),
    saving?.co2_kilograms_per_year && `${money(saving.co2_kilograms_per_year.value)} kg CO2`,
  ].filter(Boolean);
  return (
    <div class="saved">
      <p class="saving">
        <b>{quantity(percent.value, "%")}</b> <small>90 %: {interval(percent, "%")}</small>
      </p>
      <svg
        viewBox={`0 0 ${WIDTH} 30`}
        class="range"
        role="img"
        aria-label={`saving ${quantity(percent.value, "%")}, 90 % interval ${interval(percent, "%")}`}
      >
        <line x1={x(ends[0])} x2={x(ends[1])} y1="10" y2="10" class="rail" />
        <line x1={x(low)} x2={x(high)} y1="10" y2="10" class="span" />
        <line x1={x(0)} x2={x(0)} y1="3" y2="17" class="zero" />
        <circle cx={x(amount(percent.value))} cy="10" r="5" />
        <text x={x(0)} y="28" text-anchor={ends[0] === 0 ? "start" : "middle"}>
          0
        </text>
      </svg>
      <p class="verdict">
        saves with a probability of{" "}
        <b>{probability >= 0.9995 ? "more than 0.999" : probability.toPrecision(3)}</b>
        {saving && <small> {year.join(", ")} a year</small>}
      </p>
    </div>
  );
}

function money(value: number | "unbounded"): string {
  return typeof value === "number" ? Number(value.toPrecision(3)).toLocaleString("en") : value;
}

function Misses({ answer }: { answer: Answer }) {
  return (
    <details class="table">
      <summary>The nearest misses ({answer.nearest_misses.length})</summary>
      <ul>
        {answer.nearest_misses.map((miss) => (
          <li key={at(miss.row)}>
            {at(miss.row)}:{" "}
            {miss.shortfalls
              .map((one) =>
                one.unknown
                  ? `${word(one.bound)} is not shown to hold`
                  : `misses ${word(one.bound)} by ${quantity(one.missed_by_percent, "%")}`,
              )
              .join(", ")}
          </li>
        ))}
      </ul>
    </details>
  );
}
