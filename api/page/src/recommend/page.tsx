// Three questions (drive, workload, what runs today), then the answer, which follows every move.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DeviceSummary, Preset } from "../api/types";
import { models } from "../drives/models";
import { Group, Problems, Select } from "../parts/field";
import { Trouble, useResource } from "../parts/loading";
import { advance, remember } from "../router";
import { AnswerView } from "./answer_view";
import { useAnswer } from "./asking";
import { FactorsForm } from "./factors_form";
import { FIRST_DEVICE, FIRST_PROFILE, fromAddress, type Question, toAddress } from "./question";
import { SlaForm } from "./sla_form";
import { TodayForm } from "./today_form";
import { WorkloadForm } from "./workload_form";

/** The recommender's page. */
export function RecommendPage({ query }: { query: URLSearchParams }) {
  const devices = useResource<{ devices: DeviceSummary[] }>("/devices");
  const presets = useResource<{ presets: Preset[] }>("/workloads/presets");
  const [linked] = useState(() => fromAddress(query));
  const [question, setQuestion] = useState<Question>(
    () =>
      linked.question ?? { device: query.get("device") ?? FIRST_DEVICE, profile: FIRST_PROFILE },
  );
  const [begun, setBegun] = useState(linked.question !== null);
  const [folded, setFolded] = useState(begun);
  const answers = useRef<HTMLDivElement>(null);
  const asked = useAnswer(begun ? question : null);
  useEffect(() => {
    if (begun) remember(toAddress(question));
  }, [question, begun]);
  const change = useCallback(
    (profile: Question["profile"]) => setQuestion((last) => ({ ...last, profile })),
    [],
  );
  const begin = () => {
    if (!begun) advance(toAddress(question));
    setBegun(true);
    setFolded(true);
    scrollTo(0, 0);
    answers.current?.focus();
  };
  // drawn anew with every answer, and not with every question
  const { answer, question: answered } = asked;
  const view = useMemo(
    () => answer && answered && <AnswerView answer={answer} question={answered} />,
    [answer, answered],
  );
  const trouble = devices.trouble ?? presets.trouble;
  return (
    <>
      <h1 class={begun ? "visually-hidden" : ""}>Less energy for the same I/O</h1>
      {!begun && (
        <p class="lead">
          iojoule finds the settings with which an NVMe drive and its host do your I/O for the least
          energy within your latency limits, and states how certain that is. Answer three questions.
        </p>
      )}
      {linked.trouble && <Trouble text={linked.trouble} />}
      <div class={begun ? "two-columns" : "first"}>
        <form
          class={folded ? "question folded" : "question"}
          aria-label="The question"
          onSubmit={(event) => {
            event.preventDefault();
            begin();
          }}
        >
          {trouble && <Trouble text={trouble} />}
          {begun && (
            <button
              type="button"
              class="unfold"
              aria-expanded={!folded}
              onClick={() => setFolded(!folded)}
            >
              {folded ? "Change the question" : "Fold the question"}
            </button>
          )}
          <Problems.Provider value={asked.problems}>
            <div class="fields">
              <Group title="1. Drive">
                <Select
                  label="Model"
                  value={question.device}
                  name="device"
                  choices={models(devices.value?.devices, question.device)}
                  onChange={(device) => setQuestion((last) => ({ ...last, device }))}
                />
                <p class="hint">The fewer measurements a model has, the wider its intervals.</p>
              </Group>
              <WorkloadForm
                profile={question.profile}
                presets={presets.value?.presets ?? []}
                open={begun}
                onChange={change}
              />
              <TodayForm
                settings={question.settings ?? ""}
                onSettings={(settings) =>
                  setQuestion((last) => ({ ...last, settings: settings || undefined }))
                }
                open={begun}
                profile={question.profile}
                onChange={change}
              />
              {begun && <SlaForm profile={question.profile} onChange={change} />}
              {begun && <FactorsForm profile={question.profile} onChange={change} />}
            </div>
          </Problems.Provider>
          {!begun && (
            <button type="submit" class="primary">
              Recommend
            </button>
          )}
        </form>
        <div
          class="answer"
          ref={answers}
          tabIndex={-1}
          role="region"
          aria-label="The answer"
          aria-busy={asked.waiting}
        >
          <p class="visually-hidden" role="status">
            {asked.waiting ? "asking" : asked.answer ? "answered" : ""}
          </p>
          {asked.trouble && <Trouble text={asked.trouble} />}
          {view}
        </div>
      </div>
    </>
  );
}
