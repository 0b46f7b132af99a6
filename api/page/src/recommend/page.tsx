// Choose a drive, say what the workload is and what must hold; the answer follows every move.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { DeviceSummary, Preset } from "../api/types";
import { Group, Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { remember } from "../router";
import { AnswerView } from "./answer_view";
import { useAnswer } from "./asking";
import { FIRST_PROFILE, fromAddress, type Question, toAddress } from "./question";
import { SlaForm } from "./sla_form";
import { WorkloadForm } from "./workload_form";

const FIRST_DEVICE = "samsung-980-pro-1tb";

/** The recommender's page. */
export function RecommendPage({ query }: { query: URLSearchParams }) {
  const devices = useResource<{ devices: DeviceSummary[] }>("/devices");
  const presets = useResource<{ presets: Preset[] }>("/workloads/presets");
  const [question, setQuestion] = useState<Question>(
    () =>
      fromAddress(query) ?? { device: query.get("device") ?? FIRST_DEVICE, profile: FIRST_PROFILE },
  );
  const asked = useAnswer(question);
  useEffect(() => remember(toAddress(question)), [question]);
  const change = useCallback(
    (profile: Question["profile"]) => setQuestion((last) => ({ ...last, profile })),
    [],
  );
  // drawn anew with every answer, and not with every question
  const { answer, question: answered } = asked;
  const view = useMemo(
    () => answer && answered && <AnswerView answer={answer} question={answered} />,
    [answer, answered],
  );
  const trouble = devices.trouble ?? presets.trouble;
  return (
    <div class="two-columns">
      <form class="question" aria-label="The question" onSubmit={(event) => event.preventDefault()}>
        {trouble && <Trouble text={trouble} />}
        <Group title="Drive">
          <Select
            label="Model"
            value={question.device}
            choices={(
              devices.value?.devices ?? [{ id: question.device, model: question.device }]
            ).map((one) => [one.id, one.model] as const)}
            onChange={(device) => setQuestion((last) => ({ ...last, device }))}
          />
        </Group>
        <WorkloadForm
          profile={question.profile}
          presets={presets.value?.presets ?? []}
          onChange={change}
        />
        <SlaForm profile={question.profile} onChange={change} />
      </form>
      <div class="answer" aria-busy={asked.waiting}>
        <p class="visually-hidden" role="status">
          {asked.waiting ? "asking" : asked.answer ? "answered" : ""}
        </p>
        {asked.trouble && <Trouble text={asked.trouble} />}
        {view}
      </div>
    </div>
  );
}
