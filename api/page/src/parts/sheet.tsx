// Rows that can be typed or pasted from a spreadsheet.
import { useContext, useId } from "preact/hooks";
import { Problems, useTyped } from "./field";

export interface Column<T> {
  /** Field of the row; the service names it when it rejects the value. */
  name: string;
  title: string;
  get: (row: T) => string;
  set: (row: T, text: string) => T;
  /** Values to choose from while typing. */
  choices?: readonly string[];
}

interface SheetProps<T> {
  /** Field of the list in the request. */
  name: string;
  title: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  empty: T;
  onChange: (rows: T[]) => void;
}

/** A table of inputs; cells pasted into one of them fill those to its right and below. */
export function Sheet<T>({ name, title, columns, rows, empty, onChange }: SheetProps<T>) {
  const problems = useContext(Problems);
  const lists = useId();
  const paste = (event: ClipboardEvent, row: number, column: number) => {
    const text = event.clipboardData?.getData("text/plain").replace(/\r?\n$/, "") ?? "";
    if (!/[\t\n]/.test(text)) return;
    event.preventDefault();
    onChange(filled(rows, cellsOf(text, columns), row, column, columns, empty));
  };
  const problem = (row: number, field: string) =>
    problems.find((one) => one.field.endsWith(`/${name}/${row}/${field}`))?.detail ?? null;
  return (
    <fieldset class="sheet">
      <legend>{title}</legend>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              {columns.map((one) => (
                <th scope="col" key={one.name}>
                  {one.title}
                </th>
              ))}
              <th scope="col">
                <span class="visually-hidden">Remove</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {columns.map((one, column) => {
                  const enter = (text: string) =>
                    onChange(
                      rows.map((each, index) => (index === at ? one.set(each, text) : each)),
                    );
                  return (
                    <Cell
                      key={one.name}
                      label={`${title}, row ${at + 1}, ${one.title}`}
                      value={one.get(row)}
                      enter={enter}
                      onPaste={(event) => paste(event, at, column)}
                      choices={one.choices ? `${lists}-${one.name}` : null}
                      problem={problem(at, one.name)}
                    />
                  );
                })}
                <td>
                  <button
                    type="button"
                    aria-label={`${title}: remove row ${at + 1}`}
                    onClick={() => onChange(rows.filter((_, index) => index !== at))}
                  >
                    ×
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {columns.map(
        (one) =>
          one.choices && (
            <datalist key={one.name} id={`${lists}-${one.name}`}>
              {one.choices.map((choice) => (
                <option key={choice} value={choice} />
              ))}
            </datalist>
          ),
      )}
      <button type="button" onClick={() => onChange([...rows, empty])}>
        Add a row<span class="visually-hidden"> to {title}</span>
      </button>
    </fieldset>
  );
}

/** The cells of a pasted range, without its heads. */
function cellsOf<T>(text: string, columns: readonly Column<T>[]): string[][] {
  const cells = text.split(/\r?\n/).map((row) => row.split("\t").map((cell) => cell.trim()));
  const titles = new Set(columns.flatMap((one) => [one.title.toLowerCase(), one.name]));
  return cells[0]?.every((cell) => titles.has(cell.toLowerCase())) ? cells.slice(1) : cells;
}

function filled<T>(
  rows: readonly T[],
  cells: string[][],
  row: number,
  column: number,
  columns: readonly Column<T>[],
  empty: T,
): T[] {
  const all = [...rows];
  cells.forEach((texts, down) => {
    all[row + down] = texts.reduce(
      (last, text, right) => columns[column + right]?.set(last, text) ?? last,
      all[row + down] ?? empty,
    );
  });
  return all;
}

function Cell(props: {
  label: string;
  value: string;
  enter: (text: string) => void;
  onPaste: (event: ClipboardEvent) => void;
  /** Id of the list of values to choose from. */
  choices: string | null;
  problem: string | null;
}) {
  const told = useId();
  const typed = useTyped(props.value, props.enter);
  return (
    <td>
      <input
        type="text"
        aria-label={props.label}
        {...typed}
        onPaste={props.onPaste}
        {...(props.choices ? { list: props.choices } : {})}
        {...(props.problem ? { "aria-invalid": true, "aria-describedby": told } : {})}
      />
      {props.problem && (
        <small class="trouble" id={told}>
          {props.problem}
        </small>
      )}
    </td>
  );
}
