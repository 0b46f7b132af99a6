// Asks the service whenever the question changes: one question at a time, and then the newest.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { explain, fieldsOf, isSuperseded, post } from "../api/client";
import type { Answer, FieldProblem } from "../api/types";
import { type Question, requestOf } from "./question";

interface Answered {
  /** The last answer, and what it answers; null before the first one. */
  answer: Answer | null;
  question: Question | null;
  trouble: string | null;
  /** What is wrong at each field. */
  problems: readonly FieldProblem[];
}

export interface Asked extends Answered {
  /** Whether a newer question is under way. */
  waiting: boolean;
}

/**
 * The answer to a question, null before one is asked; while a newer one is computed the last one stays.
 *
 * A question that is under way is not given up for a newer one: while a slider is dragged there is
 * a newer one with every frame, and then nothing would ever be drawn.
 */
export function useAnswer(question: Question | null): Asked {
  const [last, setLast] = useState<Answered>({
    answer: null,
    question: null,
    trouble: null,
    problems: [],
  });
  const newest = useRef<Question | null>(question);
  const underWay = useRef<AbortController | null>(null);

  const ask = useCallback(async () => {
    const control = new AbortController();
    underWay.current = control;
    let now: Question | null;
    do {
      now = newest.current;
      if (!now) break;
      const found = await answerTo(now, control.signal);
      if (control.signal.aborted) return;
      setLast({ ...found, question: now });
    } while (now !== newest.current);
    underWay.current = null;
  }, []);

  useEffect(() => {
    newest.current = question;
    if (question && !underWay.current) void ask();
  }, [question, ask]);
  useEffect(() => () => underWay.current?.abort(), []);
  return { ...last, waiting: question !== null && last.question !== question };
}

async function answerTo(
  question: Question,
  signal: AbortSignal,
): Promise<Omit<Answered, "question">> {
  const body = requestOf(question);
  try {
    return { answer: await post<Answer>("/recommend", body, signal), trouble: null, problems: [] };
  } catch (error: unknown) {
    const trouble = isSuperseded(error) ? null : explain(error);
    return { answer: null, trouble, problems: fieldsOf(error) };
  }
}
