// Many drives under one budget: what each budget buys, and who does what under one of them.
import { line } from "d3-shape";
import { useEffect, useRef, useState } from "preact/hooks";
import { explain, fieldsOf, post, postPage, postText } from "../api/client";
import type { DeviceSummary, FieldProblem, FleetAnswer, FrontierAnswer } from "../api/types";
import { scaleOver, useFrame } from "../charts/axes";
import { Plot } from "../charts/plot";
import { TakeAlong } from "../charts/take_along";
import { quantity } from "../format";
import { NumberField, Problems } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { fileName, SaveFile, save } from "../parts/save";
import { Sheet } from "../parts/sheet";
import { Table } from "../parts/table";
import { describe } from "../recommend/configuration";
import { advance, remember } from "../router";
import {
  CLASS_COLUMNS,
  DOMAIN_COLUMNS,
  driveColumns,
  EMPTY,
  EMPTY_CLASS,
  EMPTY_DOMAIN,
  EMPTY_DRIVES,
  EXAMPLE,
  type Fleet,
  fleetOf,
  toAddress,
} from "./document";

interface Planned {
  frontier: FrontierAnswer;
  plan: FleetAnswer;
  fleet: Fleet;
}

/** A fleet in three tables; its budget curve and its plan. */
export function FleetPage({ query }: { query: URLSearchParams }) {
  const [linked] = useState(() => {
    const json = query.get("fleet");
    return json === null ? { fleet: EMPTY, trouble: null } : fleetOf(json);
  });
  const [fleet, setFleet] = useState<Fleet>(linked.fleet ?? EMPTY);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [trouble, setTrouble] = useState<string | null>(
    linked.trouble && `The fleet in this address cannot be read: ${linked.trouble}.`,
  );
  const [problems, setProblems] = useState<readonly FieldProblem[]>([]);
  const [busy, setBusy] = useState(false);
  const devices = useResource<{ devices: DeviceSummary[] }>("/devices");
  const newest = useRef(0);
  const inAddress = toAddress(fleet, false);
  const change = (part: Partial<Fleet>) => {
    const now = { ...fleet, ...part };
    newest.current += 1; // a plan that is under way is one of another fleet
    setBusy(false);
    setFleet(now);
    setPlanned(null);
    setTrouble(null);
    setProblems([]);
    const to = toAddress(now, false);
    if (to) remember(to);
  };
  const ask = async () => {
    newest.current += 1;
    const mine = newest.current;
    setBusy(true);
    setPlanned(null);
    try {
      const frontier = await post<FrontierAnswer>("/fleet/frontier", { fleet });
      const plan = await post<FleetAnswer>("/fleet/plan", { fleet });
      if (mine !== newest.current) return;
      setPlanned({ frontier, plan, fleet });
      setTrouble(null);
      setProblems([]);
    } catch (error) {
      if (mine !== newest.current) return;
      setTrouble(explain(error));
      setProblems(fieldsOf(error));
    }
    setBusy(false);
  };
  useEffect(() => {
    if (query.has("planned") && linked.fleet) void ask();
  }, []);
  const begin = () => {
    const to = toAddress(fleet, true);
    if (to) advance(to);
    void ask();
  };
  const open = async (file: File | undefined) => {
    if (!file) return;
    try {
      change(await postText<Fleet>("/fleet", await file.text()));
    } catch (error) {
      setTrouble(`${file.name}: ${explain(error)}`);
      setProblems(fieldsOf(error));
    }
  };
  const ids = (devices.value?.devices ?? []).map((one) => one.id);
  return (
    <section>
      <h1>Fleet</h1>
      <p>
        Which drives should serve which work under a power limit? State where power comes from, what
        drives there are, and what they serve. Rows can be pasted from a spreadsheet.
      </p>
      <p class="actions">
        <button type="button" onClick={() => change(EXAMPLE)}>
          Take an example
        </button>{" "}
        <button
          type="button"
          onClick={() =>
            save(fileName(fleet.name ?? "fleet", "json"), JSON.stringify(fleet, null, 2))
          }
        >
          Save the fleet
        </button>{" "}
        <label>
          Open a fleet file{" "}
          <input
            type="file"
            accept=".toml,.json"
            onChange={(event) => open(event.currentTarget.files?.[0])}
          />
        </label>
      </p>
      {trouble && <Trouble text={trouble} />}
      <Problems.Provider value={problems}>
        <form
          aria-label="The fleet"
          onSubmit={(event) => {
            event.preventDefault();
            begin();
          }}
        >
          <Sheet
            name="domains"
            title="Power domains"
            columns={DOMAIN_COLUMNS}
            rows={fleet.domains}
            empty={EMPTY_DOMAIN}
            onChange={(domains) => change({ domains } as Partial<Fleet>)}
          />
          <Sheet
            name="drives"
            title="Drives"
            columns={driveColumns(fleet, ids)}
            rows={fleet.drives}
            empty={EMPTY_DRIVES}
            onChange={(drives) => change({ drives } as Partial<Fleet>)}
          />
          <Sheet
            name="classes"
            title="Classes of work"
            columns={CLASS_COLUMNS}
            rows={fleet.classes}
            empty={EMPTY_CLASS}
            onChange={(classes) => change({ classes } as Partial<Fleet>)}
          />
          <NumberField
            label="Budget, W"
            name="watts"
            min={1}
            value={fleet.budgets?.[0]?.watts}
            onChange={(watts) =>
              change({ budgets: watts === null ? [] : [{ seconds: 0, watts }] } as Partial<Fleet>)
            }
          />
          <p class="hint">Without a budget only the limits of the domains hold.</p>
          {!inAddress && (
            <p class="hint">This fleet is too large for an address: save it to keep it.</p>
          )}
          <button type="submit" class="primary" disabled={busy}>
            {busy ? "Planning" : "Plan"}
          </button>
        </form>
      </Problems.Provider>
      <div aria-live="polite" aria-busy={busy}>
        {busy && <progress aria-label="planning" />}
        {planned && <PlanView {...planned} />}
      </div>
    </section>
  );
}

function PlanView({ frontier, plan, fleet }: Planned) {
  return (
    <>
      <p class="actions">
        <SaveFile
          label="Save the plan's report"
          name={fileName(`the plan of ${frontier.fleet}`, "html")}
          file={() => postPage("/fleet/plan", { fleet })}
        />{" "}
        <SaveFile
          label="Save the budgets' report"
          name={fileName(`the budgets of ${frontier.fleet}`, "html")}
          file={() => postPage("/fleet/frontier", { fleet })}
        />
      </p>
      <PlanTable plan={plan} />
      <BudgetCurve frontier={frontier} />
    </>
  );
}

function BudgetCurve({ frontier }: { frontier: FrontierAnswer }) {
  const frame = useFrame();
  const { points } = frontier;
  const x = scaleOver(
    points.map((point) => point.budget_watts),
    [frame.left, frame.width - frame.right],
  );
  const y = scaleOver(
    [0, ...points.map((point) => point.served_bytes_per_second)],
    [frame.height - frame.bottom, frame.top],
  );
  const path = line<(typeof points)[0]>()
    .x((point) => x(point.budget_watts))
    .y((point) => y(point.served_bytes_per_second));
  return (
    <figure class="chart">
      <TakeAlong
        name={`what budgets buy for ${frontier.fleet}`}
        points={() => ({
          names: Object.keys(points[0] ?? {}),
          rows: points.map((point) => Object.values(point)),
        })}
      />
      <Plot
        frame={frame}
        x={x}
        y={y}
        xAxis={{ title: "budget [W]", tick: String }}
        yAxis={{ title: "served", tick: (value) => quantity(value, "B/s") }}
        says="Work that is served by power budget"
      >
        <g class="series-0">
          <path d={path(points) ?? ""} class="line" />
          {points.map((point) => (
            <circle
              key={point.budget_watts}
              cx={x(point.budget_watts)}
              cy={y(point.served_bytes_per_second)}
              r="4"
              class="marker"
            />
          ))}
        </g>
      </Plot>
      <figcaption>
        What each budget buys; from right to left, what must go unserved for each watt given back.
      </figcaption>
    </figure>
  );
}

function PlanTable({ plan }: { plan: FleetAnswer }) {
  return (
    <section aria-labelledby="plan">
      <h2 id="plan">Who does what</h2>
      {plan.plans.map((one, number) => (
        <div key={one.from_seconds}>
          {plan.summary?.[number]?.map((line) => (
            <p key={line}>{line}</p>
          ))}
          <Table heads={["Drives", "Doing", "Class", "Configuration", "Load of one"]}>
            {one.groups.flatMap((group) =>
              group.assignments.map((part) => (
                <tr
                  key={`${group.name} ${part.doing} ${part.workload_class} ${part.power_state} ${part.load_bytes_per_second}`}
                >
                  <th scope="row">
                    {part.drives} of {group.name}
                  </th>
                  <td>{part.doing}</td>
                  <td>{part.workload_class ?? ""}</td>
                  <td>
                    {part.configuration ? describe(part.configuration) : `PS${part.power_state}`}
                  </td>
                  <td>{quantity(part.load_bytes_per_second, "B/s")}</td>
                </tr>
              )),
            )}
          </Table>
        </div>
      ))}
    </section>
  );
}
