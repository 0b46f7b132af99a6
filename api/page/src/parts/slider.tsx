// A bound that may be there or not, set with a slider over powers of ten or evenly.
import { useId } from "preact/hooks";

interface SliderProps {
  label: string;
  value: number | null;
  low: number;
  high: number;
  /** Where it begins when it is switched on. */
  start: number;
  show: (value: number) => string;
  log?: boolean;
  /** Without it the bound can be taken away. */
  always?: boolean;
  /** What stands there while it is switched off. */
  off?: string;
  onChange: (value: number | null) => void;
}

const STEPS = 400;

/** A labelled slider; the number beside it is what the service is asked. */
export function Slider(props: SliderProps) {
  const id = useId();
  const { value, low, high, log, show, always } = props;
  const at = value ?? props.start;
  return (
    <div class="slider">
      <label for={id}>{props.label}</label>
      {!always && (
        <input
          type="checkbox"
          aria-label={`bound ${props.label}`}
          checked={value !== null}
          onChange={(event) => props.onChange(event.currentTarget.checked ? props.start : null)}
        />
      )}
      <input
        id={id}
        type="range"
        min={0}
        max={STEPS}
        step={1}
        disabled={value === null}
        value={Math.round(toShare(at, low, high, log) * STEPS)}
        aria-valuetext={show(at)}
        onInput={(event) =>
          props.onChange(
            rounded(fromShare(Number(event.currentTarget.value) / STEPS, low, high, log)),
          )
        }
      />
      <output for={id}>{value === null ? (props.off ?? "any") : show(value)}</output>
    </div>
  );
}

function toShare(value: number, low: number, high: number, log?: boolean): number {
  const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Math.min(1, Math.max(0, share));
}

function fromShare(share: number, low: number, high: number, log?: boolean): number {
  return log ? low * (high / low) ** share : low + (high - low) * share;
}

/** Three digits, so that a link stays short. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
