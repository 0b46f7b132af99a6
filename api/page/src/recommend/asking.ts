// Asks the service whenever the question changes: one question at a time, and then the newest.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { explain, isSuperseded, post } from "../api/client";
import type { Answer } from "../api/types";
import type { Question } from "./question";

export interface Asked {
  /** The last answer, and what it answers. */
  answer: Answer | null;
  question: Question;
  trouble: string | null;
  /** Whether a newer question is under way. */
  waiting: boolean;
}

/**
 * The answer to a question; while a newer one is computed the last one stays.
 *
 * A question that is under way is not given up for a newer one: while a slider is dragged there is
 * a newer one with every frame, and then nothing would ever be drawn.
 */
export function useAnswer(question: Question): Asked {
  const [asked, setAsked] = useState<Asked>({
    answer: null,
    question,
    trouble: null,
    waiting: true,
  });
  const newest = useRef(question);
  const underWay = useRef<AbortController | null>(null);

  const ask = useCallback(async () => {
    const control = new AbortController();
    underWay.current = control;
    let now: Question;
    do {
      now = newest.current;
      const { answer, trouble } = await answerTo(now, control.signal);
      if (control.signal.aborted) return;
      setAsked({ answer, trouble, question: now, waiting: now !== newest.current });
    } while (now !== newest.current);
    underWay.current = null;
  }, []);

  useEffect(() => {
    newest.current = question;
    if (underWay.current) return;
    setAsked((last) => ({ ...last, trouble: null, waiting: true }));
    void ask();
  }, [question, ask]);
  useEffect(() => () => underWay.current?.abort(), []);
  return asked;
}

async function answerTo(
  question: Question,
  signal: AbortSignal,
): Promise<Pick<Asked, "answer" | "trouble">> {
  const body = { device: question.device, workload_profile: question.profile };
  try {
    return { answer: await post<Answer>("/recommend", body, signal), trouble: null };
  } catch (error: unknown) {
    return { answer: null, trouble: isSuperseded(error) ? null : explain(error) };
  }
}
