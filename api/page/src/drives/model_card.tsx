// The model card: what the profile rests on, how far it errs, and where it ends.
import { useState } from "preact/hooks";
import { getPage } from "../api/client";
import type { Block, ModelCard as Card } from "../api/types";
import { Trouble, useResource } from "../parts/loading";
import { fileName, SaveFile } from "../parts/save";

/** The card, section by section; asked for when somebody opens it. */
export function ModelCard({ device }: { device: string }) {
  const [open, setOpen] = useState(false);
  const path = `/devices/${encodeURIComponent(device)}/model-card`;
  const { value, trouble } = useResource<Card>(open ? path : null);
  return (
    <section aria-labelledby="model-card">
      <h2 id="model-card">Model card</h2>
      <p>
        What the profile rests on, how far it errs on what was left out, and where it ends.{" "}
        <SaveFile
          label="Save it"
          name={fileName(`${device} model card`, "html")}
          file={() => getPage(path)}
        />
      </p>
      <details class="card" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Show it</summary>
        {trouble && <Trouble text={trouble} />}
        {open && !value && !trouble && <p role="status">Writing it …</p>}
        {value && <Sections card={value} />}
      </details>
    </section>
  );
}

function Sections({ card }: { card: Card }) {
  return (
    <>
      <dl>
        {card.lead.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {card.sections.map((section) => (
        <section key={section.heading} aria-label={section.heading}>
          <h3>{section.heading}</h3>
          {section.blocks.map((block) => (
            <Shown key={JSON.stringify(block).slice(0, 200)} block={block} />
          ))}
        </section>
      ))}
    </>
  );
}

function Shown({ block }: { block: Block }) {
  if (block.kind === "text") return <p>{words(block.words)}</p>;
  if (block.kind === "points")
    return (
      <ul>
        {block.items.map((item) => (
          <li key={item}>{words(item)}</li>
        ))}
      </ul>
    );
  if (block.kind === "table") return <Rows table={block} />;
  if (block.kind === "picture")
    return (
      <figure>
        <img src={drawn(block.svg)} alt={block.caption} />
        <figcaption>{block.caption}</figcaption>
      </figure>
    );
  return null;
}

function Rows({ table }: { table: Extract<Block, { kind?: "table" }> }) {
  const side = (at: number) => (table.numbers?.includes(at) ? { class: "number" } : {});
  return (
    <section class="scroll" tabIndex={0} aria-label={table.headings.filter(Boolean).join(", ")}>
      <table>
        <thead>
          <tr>
            {table.headings.map((heading, at) => (
              <th key={heading} scope="col" {...side(at)}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row.join("|")}>
              {row.map((cell, at) =>
                at === 0 ? (
                  <th key={table.headings[at]} scope="row">
                    {words(cell)}
                  </th>
                ) : (
                  <td key={table.headings[at]} {...side(at)}>
                    {words(cell)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** What stands between backticks is code. */
function words(text: string) {
  return text.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part));
}

const INK = "#1b1b1b";
const PAPER = "#ffffff";

/** The drawing as an address, in the colours of the page. */
function drawn(svg: string): string {
  const style = getComputedStyle(document.documentElement);
  const own = svg
    .replaceAll(INK, style.getPropertyValue("--ink").trim())
    .replaceAll(PAPER, style.getPropertyValue("--paper").trim());
  return `data:image/svg+xml,${encodeURIComponent(own)}`;
}
