import type { Operation, Parameter } from "./description.js";

/** What a person has entered. */
export interface Input {
  /** The parameters by place and name, such as `path id`. */
  readonly values: ReadonlyMap<string, string>;
  readonly accept: string | undefined;
  readonly body: string | File | undefined;
  readonly contentType: string | undefined;
}

/** A request without its credential. */
export interface ApiRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  readonly body: string | File | undefined;
}

/** Creates the request of an operation. */
export function requestOf(baseUrl: string, operation: Operation, input: Input): ApiRequest {
  const { accept, body, contentType } = input;
  const headers = filledIn(operation, input, "header").map(({ name, value }): [string, string] => [name, value]);
  if (accept !== undefined) headers.push(["Accept", accept]);
  if (body !== undefined && contentType) headers.push(["Content-Type", contentType]);
  return { method: operation.method, url: urlOf(baseUrl, operation, input), headers, body };
}

/** Lists the parameters of a place, `path`, `query` or `header`, that were filled in. */
function filledIn({ object }: Operation, { values }: Input, place: string): (Parameter & { readonly value: string })[] {
  return (object.parameters ?? []).flatMap((parameter) => {
    const value = parameter.in === place ? (values.get(`${place} ${parameter.name}`) ?? "") : "";
    return value === "" ? [] : [{ ...parameter, value }];
  });
}

/** Creates the URL of an operation. A missing parameter of the path stays visible as `{id}`. */
function urlOf(baseUrl: string, operation: Operation, input: Input): string {
  const ofSegments = parametersOfSegments(operation);
  const filled = operation.path.replaceAll(/\{([^}]*)\}/g, (gap, name: string) => {
    const value = input.values.get(`path ${name}`) ?? "";
    if (value === "") return gap;
    return ofSegments.has(name) ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
  const query = new URLSearchParams();
  for (const { name, schema, value } of filledIn(operation, input, "query")) {
    // A repeated parameter has one line per value.
    for (const line of schema?.type === "array" ? value.split("\n") : [value]) query.append(name, line);
  }
  return `${baseUrl}${filled}${query.size === 0 ? "" : `?${query}`}`;
}

/** Returns the names of the parameters that stand for any number of segments, slashes between them. */
function parametersOfSegments({ object }: Operation): ReadonlySet<string> {
  // A parameter stands for each wildcard of the path template of google.api.http; a variable without any is a segment.
  const template = object["x-rpc"]?.path.replaceAll(/\{[^=}]+\}/g, "*") ?? "";
  const wildcards = template.match(/\*\*?/g) ?? [];
  const names = (object.parameters ?? []).filter((parameter) => parameter.in === "path").map(({ name }) => name);
  return new Set(names.filter((_, at) => wildcards[at] === "**"));
}

/** Sends a request with its token, or without if that is ""; resolves when the header of its answer has arrived. */
export async function send(request: ApiRequest, token: string, signal: AbortSignal): Promise<Response> {
  const { method, url, body } = request;
  const headers = new Headers(request.headers);
  if (token !== "") headers.set("authorization", `Bearer ${token}`);
  const init: RequestInit = { method, headers, signal, cache: "no-store", redirect: "manual", credentials: "omit" };
  return await fetch(url, { ...init, ...(body !== undefined && { body }) });
}
