// Labelled inputs.
import { type ComponentChildren, createContext, type TargetedEvent } from "preact";
import { useContext, useId, useState } from "preact/hooks";
import type { FieldProblem } from "../api/types";

/** What the service rejects, by field; a field shows what ends with its name. */
export const Problems = createContext<readonly FieldProblem[]>([]);

function useProblem(name: string | undefined): string | null {
  const found = useContext(Problems).find((one) => name && one.field.endsWith(`/${name}`));
  return found?.detail ?? null;
}

/** A label, what it labels, and what is wrong with it. */
function Field(props: {
  id: string;
  label: string;
  problem: string | null;
  wide?: boolean;
  children: ComponentChildren;
}) {
  return (
    <div class={props.wide ? "field wide" : "field"}>
      <label for={props.id}>{props.label}</label>
      {props.children}
      {props.problem && (
        <p class="trouble" id={`${props.id}-problem`}>
          {props.problem}
        </p>
      )}
    </div>
  );
}

function invalid(id: string, problem: string | null) {
  return problem ? { "aria-invalid": true, "aria-describedby": `${id}-problem` } : {};
}

type Choice = readonly [value: string, label: string, group?: string];

/** A choice of words; choices with a group stand below its name. */
export function Select(props: {
  label: string;
  value: string;
  choices: readonly Choice[];
  name?: string;
  onChange: (value: string) => void;
}) {
  const id = useId();
  const problem = useProblem(props.name);
  const groups = [...new Set(props.choices.map((one) => one[2]))];
  return (
    <Field id={id} label={props.label} problem={problem} wide>
      <select
        id={id}
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
        {...invalid(id, problem)}
      >
        {groups.map((group) => {
          const options = props.choices
            .filter((one) => one[2] === group)
            .map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ));
          return group ? (
            <optgroup key={group} label={group}>
              {options}
            </optgroup>
          ) : (
            options
          );
        })}
      </select>
    </Field>
  );
}

/**
 * Of an input: what is being typed stays while an answer that arrives draws the form anew.
 *
 * `enter` gets the text once it is entered.
 */
export function useTyped(value: string | number | null | undefined, enter: (text: string) => void) {
  const [typed, setTyped] = useState<string | null>(null);
  return {
    value: typed ?? value ?? "",
    onInput: (event: TargetedEvent<HTMLInputElement>) => setTyped(event.currentTarget.value),
    onBlur: () => setTyped(null),
    onChange: (event: TargetedEvent<HTMLInputElement>) => {
      setTyped(null);
      enter(event.currentTarget.value.trim());
    },
  };
}

/** A number; empty means that nothing is stated. */
export function NumberField(props: {
  label: string;
  value: number | null | undefined;
  min?: number;
  max?: number;
  step?: number | "any";
  name?: string;
  onChange: (value: number | null) => void;
}) {
  const id = useId();
  const typed = useTyped(props.value, (text) => props.onChange(text === "" ? null : Number(text)));
  const problem = useProblem(props.name);
  return (
    <Field id={id} label={props.label} problem={problem}>
      <input
        id={id}
        type="number"
        inputMode="decimal"
        step={props.step ?? "any"}
        {...typed}
        {...(props.min === undefined ? {} : { min: props.min })}
        {...(props.max === undefined ? {} : { max: props.max })}
        {...invalid(id, problem)}
      />
    </Field>
  );
}

/** A line of text; empty means that nothing is stated. */
export function TextField(props: {
  label: string;
  value: string | null | undefined;
  name?: string;
  onChange: (value: string | null) => void;
}) {
  const id = useId();
  const typed = useTyped(props.value, (text) => props.onChange(text || null));
  const problem = useProblem(props.name);
  return (
    <Field id={id} label={props.label} problem={problem}>
      <input id={id} {...typed} {...invalid(id, problem)} />
    </Field>
  );
}

/** Fields that most readers leave as they are; open at first or not. */
export function Fold(props: { title: string; open: boolean; children: ComponentChildren }) {
  return (
    <details class="fold" open={props.open}>
      <summary>{props.title}</summary>
      {props.children}
    </details>
  );
}

/** Fields that belong together. */
export function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {children}
    </fieldset>
  );
}
