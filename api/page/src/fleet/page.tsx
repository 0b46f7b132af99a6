// Many drives under one budget: what each budget buys, and who does what under one of them.
import { line } from "d3-shape";
import { useEffect, useState } from "preact/hooks";
import { explain, get, post, postPage } from "../api/client";
import type { FleetAnswer, FrontierAnswer } from "../api/types";
import { FRAME, scaleOver } from "../charts/axes";
import { Plot } from "../charts/plot";
import { TakeAlong } from "../charts/take_along";
import { quantity } from "../format";
import { Trouble } from "../parts/loading";
import { fileName, SaveFile } from "../parts/save";
import { Table } from "../parts/table";
import { describe } from "../recommend/configuration";
import { remember } from "../router";

interface Example {
  paths: {
    "/fleet/plan": {
      post: {
        requestBody: {
          content: Record<string, { examples: Record<string, { value: { fleet: unknown } }> }>;
        };
      };
    };
  };
}

/** The budget curve of a fleet, and its plan. */
export function FleetPage({ query }: { query: URLSearchParams }) {
  const [text, setText] = useState(query.get("fleet") ?? "");
  const [frontier, setFrontier] = useState<FrontierAnswer | null>(null);
  const [plan, setPlan] = useState<FleetAnswer | null>(null);
  const [asked, setAsked] = useState<unknown>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => remember(text.trim() ? { fleet: text } : {}), [text]);
  const example = async () => {
    const { paths } = await get<Example>("/openapi.json");
    const body = Object.values(paths["/fleet/plan"].post.requestBody.content)[0];
    const value = Object.values(body?.examples ?? {})[0]?.value;
    setText(JSON.stringify(value?.fleet, null, 1));
  };
  const ask = async () => {
    setBusy(true);
    try {
      const fleet: unknown = JSON.parse(text);
      setFrontier(await post<FrontierAnswer>("/fleet/frontier", { fleet }));
      setPlan(await post<FleetAnswer>("/fleet/plan", { fleet }));
      setAsked({ fleet });
      setTrouble(null);
    } catch (error) {
      setTrouble(error instanceof SyntaxError ? `no valid JSON: ${error.message}` : explain(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section>
      <h1>Fleet</h1>
      <p class="field-wide">
        <label for="fleet">The fleet: power domains, drives, classes of work (JSON)</label>
        <textarea
          id="fleet"
          rows={12}
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </p>
      <p>
        <button type="button" onClick={example}>
          Take an example
        </button>{" "}
        <button type="button" onClick={ask} disabled={busy || text.trim() === ""}>
          {busy ? "Planning" : "Plan"}
        </button>
      </p>
      {trouble && <Trouble text={trouble} />}
      {plan && (
        <p>
          <SaveFile
            label="Save the plan's report"
            name={fileName(`the plan of ${frontier?.fleet}`, "html")}
            file={() => postPage("/fleet/plan", asked)}
          />{" "}
          <SaveFile
            label="Save the budgets' report"
            name={fileName(`the budgets of ${frontier?.fleet}`, "html")}
            file={() => postPage("/fleet/frontier", asked)}
          />
        </p>
      )}
      {frontier && <BudgetCurve frontier={frontier} />}
      {plan && <PlanTable plan={plan} />}
    </section>
  );
}

function BudgetCurve({ frontier }: { frontier: FrontierAnswer }) {
  const frame = FRAME;
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
      {plan.plans.map((one) => (
        <div key={one.from_seconds}>
          <p>
            {one.budget_watts === null ? "Within the limits" : `Under ${one.budget_watts} W`}:{" "}
            {quantity(one.expected_watts, "W")} expected, {quantity(one.percentile_watts, "W")} in{" "}
            {one.percentile * 100} % of the time
          </p>
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
