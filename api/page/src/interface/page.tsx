// The service's interface, from its own description.
import { Copyable } from "../parts/copy";
import { Trouble, useResource } from "../parts/loading";

interface Operation {
  summary?: string;
  description?: string;
  requestBody?: { content?: Record<string, Media> };
}

interface Media {
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Description {
  paths: Record<string, Record<string, Operation>>;
}

/** Every operation with a request that works. */
export function InterfacePage() {
  const { value, trouble } = useResource<Description>("/openapi.json");
  return (
    <article>
      <h1>API</h1>
      <p>
        The whole description, for programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).
        Errors are <code>application/problem+json</code>.
      </p>
      {trouble && <Trouble text={trouble} />}
      {value &&
        Object.entries(value.paths).flatMap(([path, methods]) =>
          Object.entries(methods).map(([method, operation]) => (
            <section key={`${method} ${path}`} aria-label={`${method.toUpperCase()} ${path}`}>
              <h2>
                <code>
                  {method.toUpperCase()} {path}
                </code>
              </h2>
              <p>
                {operation.summary} {operation.description}
              </p>
              <Copyable label={`${method} ${path}`} text={curl(method, path, operation)} />
            </section>
          )),
        )}
    </article>
  );
}

function curl(method: string, path: string, operation: Operation): string {
  const address = `${location.origin}${path.replace("{id}", "samsung-980-pro-1tb")}`;
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (!type || !media)
    return method === "get"
      ? `curl -s ${address}`
      : `curl -s -X ${method.toUpperCase()} ${address}`;
  const example = media.example ?? Object.values(media.examples ?? {})[0]?.value ?? "";
  const body = typeof example === "string" ? example : JSON.stringify(example);
  return `curl -s ${address} -H 'Content-Type: ${type}' --data-binary '${body.replaceAll("'", "'\\''")}'`;
}
