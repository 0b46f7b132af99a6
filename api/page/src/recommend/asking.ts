// Asks the service whenever the question changes; only the newest answer counts.
import { useEffect, useRef, useState } from "preact/hooks";
import { explain, isSuperseded, post } from "../api/client";
import type { Answer } from "../api/types";
import type { Question } from "./question";

export interface Asked {
  answer: Answer | null;
  trouble: string | null;
  waiting: boolean;
}

/** The answer to a question; while a new one is computed the last one stays. */
export function useAnswer(question: Question | null): Asked {
  const [asked, setAsked] = useState<Asked>({ answer: null, trouble: null, waiting: false });
  const last = useRef<Answer | null>(null);
  useEffect(() => {
    if (!question) return;
    const control = new AbortController();
    setAsked({ answer: last.current, trouble: null, waiting: true });
    post<Answer>(
      "/recommend",
      { device: question.device, workload_profile: question.profile },
      control.signal,
    )
      .then((answer) => {
        last.current = answer;
        setAsked({ answer, trouble: null, waiting: false });
      })
      .catch((error: unknown) => {
        if (isSuperseded(error)) return;
        last.current = null;
        setAsked({ answer: null, trouble: explain(error), waiting: false });
      });
    return () => control.abort();
  }, [question]);
  return asked;
}
