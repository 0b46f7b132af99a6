// A table that scrolls by itself where the window is narrow.
import type { ComponentChildren } from "preact";

/** Column heads, and the rows below them. */
export function Table({ heads, children }: { heads: string[]; children: ComponentChildren }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
