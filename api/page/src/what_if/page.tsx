// What if something were otherwise: the answer as things are beside the changed one.

import { useEffect, useMemo, useState } from "preact/hooks";
import { explain, fieldsOf, isSuperseded, post, postPage } from "../api/client";
import type { DeviceSummary, FieldProblem, WhatIfAnswer } from "../api/types";
import { models } from "../drives/models";
import { duration, interval, plain, quantity, type Unit } from "../format";
import { Group, NumberField, Problems, Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { fileName, SaveFile } from "../parts/save";
import { Slider } from "../parts/slider";
import { Table } from "../parts/table";
import { describe, word } from "../recommend/configuration";
import { estimate, scopePower } from "../recommend/quantities";
import {
  FIRST_DEVICE,
  FIRST_PROFILE,
  fromAddress,
  type Question,
  slaOf,
} from "../recommend/question";
import { lastAddress, remember } from "../router";

interface Changes {
  growth?: number;
  drives?: number;
  drive?: string;
  mix?: number;
  "sla.latency_p99_ns_max"?: number;
}

const P99 = "sla.latency_p99_ns_max";

const UNITS: Record<string, Unit> = {
  throughput_bytes_per_second: "B/s",
  capacity_bytes_per_second: "B/s",
  latency_mean_ns: "ns",
  latency_p99_ns: "ns",
  device_power_watts: "W",
  power_watts: "W",
  joules_per_useful_gb: "J/GB",
  kwh_per_year: "kWh",
};

/** The changes of a link; `trouble` where they cannot be read. */
function changesOf(query: URLSearchParams): { changes: Changes; trouble: string | null } {
  const first = { growth: 1.5 };
  const text = query.get("changes");
  if (text === null) return { changes: first, trouble: null };
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found === "object" && found !== null && !Array.isArray(found))
      return { changes: found as Changes, trouble: null };
  } catch {
    // told below
  }
  return {
    changes: first,
    trouble:
      "The changes in this address cannot be read, so nothing was asked: they are no JSON object.",
  };
}

/** Two answers side by side, and what differs between them. */
export function WhatIfPage({ query }: { query: URLSearchParams }) {
  const [linked] = useState(() => {
    const { changes, trouble } = changesOf(query);
    const from = query.has("profile")
      ? fromAddress(query)
      : fromAddress(new URL(lastAddress(""), location.href).searchParams);
    return { ...from, changes, trouble: from.trouble ?? trouble };
  });
  const [question] = useState<Question>(
    () => linked.question ?? { device: FIRST_DEVICE, profile: FIRST_PROFILE },
  );
  const [changes, setChanges] = useState<Changes>(linked.changes);
  const [found, setFound] = useState<WhatIfAnswer | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [problems, setProblems] = useState<readonly FieldProblem[]>([]);
  const [waiting, setWaiting] = useState(true);
  const devices = useResource<{ devices: DeviceSummary[] }>("/devices");
  const asked = useMemo(
    () => ({ device: question.device, workload_profile: question.profile, changes }),
    [question, changes],
  );
  useEffect(() => {
    if (linked.trouble) return;
    remember({
      device: question.device,
      profile: JSON.stringify(question.profile),
      changes: JSON.stringify(changes),
    });
    const control = new AbortController();
    setWaiting(true);
    post<WhatIfAnswer>("/what-if", asked, control.signal)
      .then((answer) => {
        setFound(answer);
        setTrouble(null);
        setProblems([]);
        setWaiting(false);
      })
      .catch((error: unknown) => {
        if (isSuperseded(error)) return;
        setFound(null); // the last answer is to other changes
        setTrouble(explain(error));
        setProblems(fieldsOf(error));
        setWaiting(false);
      });
    return () => control.abort();
  }, [question, changes, asked, linked]);
  const change = (one: Changes) => setChanges((last) => ({ ...last, ...one }));
  return (
    <div class="two-columns">
      <form class="question" aria-label="The changes" onSubmit={(event) => event.preventDefault()}>
        <Problems.Provider value={problems}>
          <Group title="Changes">
            <Slider
              always
              log
              label="demand, times today's"
              low={0.1}
              high={10}
              start={1}
              show={(value) => plain(value)}
              value={changes.growth ?? 1}
              onChange={(growth) => change({ growth: growth ?? 1 })}
            />
            <Slider
              log
              label="p99 latency at most"
              off="as now"
              low={2e4}
              high={1e8}
              start={slaOf(question.profile).latency_p99_ns_max ?? 2e6}
              show={duration}
              value={changes[P99] ?? null}
              onChange={(bound) => change({ [P99]: bound ?? undefined } as Changes)}
            />
            <NumberField
              label="Drives"
              name="drives"
              min={1}
              step={1}
              value={changes.drives ?? 1}
              onChange={(drives) => change({ drives: drives ?? 1 })}
            />
            <Select
              label="Drive"
              name="drive"
              value={changes.drive ?? question.device}
              choices={models(devices.value?.devices, changes.drive ?? question.device)}
              onChange={(drive) => change({ drive })}
            />
            {question.profile.workload.operation === "mixed" && (
              <Slider
                always
                label="share of reads"
                low={0}
                high={1}
                start={0.7}
                show={(value) => `${Math.round(value * 100)} %`}
                value={changes.mix ?? question.profile.workload.read_fraction ?? 0.7}
                onChange={(mix) => change({ mix: mix ?? 0.7 })}
              />
            )}
          </Group>
        </Problems.Provider>
        <p class="hint">
          Of {question.profile.name}. A drive that is built otherwise is simulated, which{" "}
          <code>iojoule what-if</code> does.
        </p>
      </form>
      <div class="answer" aria-busy={waiting && !linked.trouble}>
        <h1>What if</h1>
        {linked.trouble && <Trouble text={linked.trouble} />}
        {trouble && <Trouble text={trouble} />}
        {found && <Outcome found={found} />}
        {found && (
          <p>
            <SaveFile
              label="Save report"
              name={fileName(
                `what if, ${found.base.answer.workload} on ${question.device}`,
                "html",
              )}
              file={() => postPage("/what-if", asked)}
            />
          </p>
        )}
      </div>
    </div>
  );
}

function Outcome({ found }: { found: WhatIfAnswer }) {
  return (
    <>
      <section
        class={found.changed.feasible ? "headline" : "headline infeasible"}
        aria-label="Verdict"
      >
        <p>{found.summary}</p>
      </section>
      <div class="sides">
        <Side title="Now" side={found.base} />
        <Side title="Then" side={found.changed} />
      </div>
      {found.differences.length > 0 && (
        <Table heads={["Quantity", "Now", "Then", "Change"]}>
          {found.differences.map((one) => {
            const unit = UNITS[one.quantity];
            if (!unit) return null;
            return (
              <tr key={one.quantity}>
                <th scope="row">{word(one.quantity)}</th>
                <td>{quantity(one.base.value, unit)}</td>
                <td>
                  {quantity(one.changed.value, unit)} <small>{interval(one.changed, unit)}</small>
                </td>
                <td>
                  {one.change.low === 0 && one.change.high === 0 ? (
                    "none"
                  ) : (
                    <>
                      {one.change_percent > 0 ? "+" : ""}
                      {quantity(one.change_percent, "%")}{" "}
                      <small>{one.certain ? "sure" : "may be none"}</small>
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </Table>
      )}
      <ul class="notes">
        {found.notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </>
  );
}

function Side({ title, side }: { title: string; side: WhatIfAnswer["base"] }) {
  const use = side.answer.recommended;
  const power = use && estimate(use, scopePower(side.answer));
  return (
    <section class="headline" aria-label={title}>
      <h2>{title}</h2>
      <p>
        {use ? describe(use.configuration) : "No configuration keeps the SLA."}
        {side.drives > 1 ? ` on each of ${side.drives} drives` : ""}
      </p>
      {use && (
        <p>
          {power && (
            <>
              <b>{quantity(power.value, "W")}</b> <small>{interval(power, "W")}</small>
            </>
          )}
        </p>
      )}
      {use && <p class="hint">evidence: {side.answer.evidence.throughput_bytes_per_second}</p>}
    </section>
  );
}
