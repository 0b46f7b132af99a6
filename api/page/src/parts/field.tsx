// Labelled inputs.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** A choice of words. */
export function Select(props: {
  label: string;
  value: string;
  choices: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        {props.choices.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A number; empty means that nothing is said. */
export function NumberField(props: {
  label: string;
  value: number | null | undefined;
  min?: number;
  max?: number;
  step?: number | "any";
  placeholder?: string;
  onChange: (value: number | null) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="number"
        inputMode="decimal"
        step={props.step ?? "any"}
        value={props.value ?? ""}
        {...(props.min === undefined ? {} : { min: props.min })}
        {...(props.max === undefined ? {} : { max: props.max })}
        {...(props.placeholder === undefined ? {} : { placeholder: props.placeholder })}
        onChange={(event) => {
          const text = event.currentTarget.value.trim();
          props.onChange(text === "" ? null : Number(text));
        }}
      />
    </div>
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
