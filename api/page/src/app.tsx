// The shell: where one can go, and what is there.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { DrivePage } from "./drives/drive_page";
import { DrivesPage } from "./drives/list_page";
import { FleetPage } from "./fleet/page";
import { InterfacePage } from "./interface/page";
import { JobsPage } from "./jobs/jobs_page";
import { KeyForm } from "./parts/key_form";
import { RecommendPage } from "./recommend/page";
import { address, go, lastAddress, usePlace } from "./router";
import { WhatIfPage } from "./what_if/page";

const PLACES = [
  ["", "Recommend"],
  ["what-if", "What if"],
  ["fleet", "Fleet"],
  ["drives", "Drives"],
  ["jobs", "Jobs"],
  ["api", "API"],
] as const;

/** The whole page. */
export function App() {
  const place = usePlace();
  useEffect(() => {
    const [first, second] = place.path.split("/");
    const name = PLACES.find(([path]) => path === first)?.[1] ?? "Not found";
    document.title = `${second ? `${decodeURIComponent(second)} - ` : ""}${name} - iojoule`;
  }, [place]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <span class="brand">iojoule</span>
        <nav aria-label="Pages">
          {PLACES.map(([path, name]) => (
            <Link key={path} to={lastAddress(path)} here={place.path.split("/")[0] === path}>
              {name}
            </Link>
          ))}
        </nav>
      </header>
      <KeyForm />
      <main id="main" tabIndex={-1}>
        <Content key={place.visit} path={place.path} query={place.query} />
      </main>
    </>
  );
}

function Content({ path, query }: { path: string; query: URLSearchParams }) {
  const [first, second] = path.split("/");
  if (first === "") return <RecommendPage query={query} />;
  if (first === "drives")
    return second ? <DrivePage id={decodeURIComponent(second)} /> : <DrivesPage query={query} />;
  if (first === "what-if") return <WhatIfPage query={query} />;
  if (first === "fleet") return <FleetPage query={query} />;
  if (first === "jobs") return <JobsPage />;
  if (first === "api") return <InterfacePage />;
  return (
    <section>
      <h1>Nothing is here</h1>
      <p>
        <Link to={address("")}>Ask for a recommendation</Link>
      </p>
    </section>
  );
}

/** A link inside the page, followed without loading it anew. */
export function Link(props: { to: string; here?: boolean; children: ComponentChildren }) {
  return (
    <a
      href={props.to}
      {...(props.here ? { "aria-current": "page" as const } : {})}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        go(event.currentTarget.getAttribute("href") ?? props.to);
      }}
    >
      {props.children}
    </a>
  );
}
