import type { Operation } from "./description.js";
import { filledIn, type Input } from "./filled-in.js";
import { parametersOfSegments } from "./rpc.js";

/** A request without its credential. */
export interface ApiRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  readonly body: string | File | undefined;
}

/** Creates an operation's request. */
export function requestOf(baseUrl: string, operation: Operation, input: Input): ApiRequest {
  const { accept, body, contentType } = input;
  const headers = filledIn(operation, input, "header").map(({ name, value }): [string, string] => [name, value]);
  if (accept !== undefined) headers.push(["Accept", accept]);
  if (body !== undefined && contentType) headers.push(["Content-Type", contentType]);
  return { method: operation.method, url: urlOf(baseUrl, operation, input), headers, body };
}

/** Creates an operation's URL. A missing path parameter remains visible as `{id}`. */
function urlOf(baseUrl: string, operation: Operation, input: Input): string {
  const segmentNames = parametersOfSegments(operation);
  const values = new Map(filledIn(operation, input, "path").map(({ name, value }) => [name, value]));
  const filled = operation.path.replaceAll(/\{([^}]*)\}/g, (gap, name: string) => {
    const value = values.get(name);
    if (value === undefined) return gap;
    return segmentNames.has(name) ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
  const query = new URLSearchParams();
  for (const { name, schema, value } of filledIn(operation, input, "query")) {
    // A repeated parameter has one line per value.
    for (const line of schema?.type === "array" ? value.split("\n") : [value]) query.append(name, line);
  }
  return `${baseUrl}${filled}${query.size === 0 ? "" : `?${query}`}`;
}

/** Sends a request, with the token unless the token is "". Resolves when the response header has arrived. */
export async function send(request: ApiRequest, token: string, signal: AbortSignal): Promise<Response> {
  const { method, url, body } = request;
  const headers = new Headers(request.headers);
  if (token !== "") headers.set("authorization", `Bearer ${token}`);
  const init: RequestInit = { method, headers, signal, cache: "no-store", redirect: "manual", credentials: "omit" };
  return await fetch(url, { ...init, ...(body !== undefined && { body }) });
}
