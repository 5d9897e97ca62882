import { type Case, type Expectation, isRecord, type Json } from "./case.ts";
import { type HttpResponse, fieldOf } from "./response.ts";
import { differences, show } from "./compare.ts";
import { parseJson } from "./json-text.ts";
import { readStream } from "./stream-forms.ts";

/** The result of comparing a response with a case. */
export type Verdict =
  /** The response matches `expect`, or the alternative in `or` with the index `alternative`. */
  | { readonly hasPassed: true; readonly alternative?: number }
  /** The response's problems, each as a line. */
  | { readonly hasPassed: false; readonly problems: readonly string[] };

/** Compares a response with a case's expectations. */
export function judge({ expect, or }: Case, response: HttpResponse): Verdict {
  const problems = problemsOf(expect, response);
  if (problems.length === 0) return { hasPassed: true };
  const alternative = or.findIndex((each) => problemsOf(each, response).length === 0);
  return alternative === -1 ? { hasPassed: false, problems } : { hasPassed: true, alternative };
}

function problemsOf(want: Expectation, response: HttpResponse): readonly string[] {
  if ("items" in want) return streamProblems(want.items, want.error === true, response);
  // A truncated response is a problem, even if its body can be parsed (RFC 9112 §8).
  const truncation = response.isComplete
    ? []
    : [`the response was truncated after ${response.body.length} bytes of its body`];
  return [...responseProblems(want, response), ...truncation];
}

function responseProblems(
  want: Exclude<Expectation, { readonly items: readonly Json[] }>,
  response: HttpResponse,
): readonly string[] {
  if ("rpc" in want) return echoProblems(want.rpc, want.message, response);
  if ("refused" in want) return [...refusalProblems(want.refused, response), ...headerProblems(want.header, response)];
  const { status, header, json, has = {}, base64, empty } = want;
  return [
    ...statusProblems([status], response),
    ...headerProblems(header, response),
    ...(json === undefined ? [] : jsonProblems(json, response)),
    ...Object.entries(has).flatMap(([name, value]) => memberProblems(name, value, response)),
    ...(base64 === undefined ? [] : bytesProblems(base64, response)),
    ...(empty === true && response.body.length > 0 ? [`expected no body, got ${show(textOf(response))}`] : []),
  ];
}

function echoProblems(rpc: string, message: Json, response: HttpResponse): readonly string[] {
  const problems = statusProblems(["200"], response);
  if (problems.length > 0) return problems;
  const echo = echoOf(response);
  if (echo === undefined) return [`expected the Echo of ${rpc}, got ${show(textOf(response))}`];
  if (echo.rpc !== rpc) return [`expected the RPC ${rpc}, got ${echo.rpc}`];
  return differences(message, echo.message, { response: false });
}

function refusalProblems(statuses: readonly string[], response: HttpResponse): readonly string[] {
  const echo = echoOf(response);
  if (response.status < 300 && echo !== undefined) {
    return [`the backend must not be called, but ${echo.rpc} was, with ${show(echo.message)}`];
  }
  return statusProblems(statuses, response);
}

function streamProblems(items: readonly Json[], error: boolean, response: HttpResponse): readonly string[] {
  // A server may respond with an error status, and no stream, if the error precedes the first message.
  if (error && items.length === 0 && response.status >= 400) return [];
  const problems = statusProblems(["200"], response);
  if (problems.length > 0) return problems;
  const stream = readStream(response);
  if (stream === undefined) return [`expected a stream of messages, got ${show(textOf(response))}`];
  return [
    ...differences(items, stream.items, { response: true }),
    ...(stream.hasError === error
      ? []
      : [error ? "the stream must end with an error" : "the stream ended with an error"]),
  ];
}

function statusProblems(wanted: readonly string[], response: HttpResponse): readonly string[] {
  const status = String(response.status);
  if (wanted.some((each) => each === status || each === `${status.slice(0, 1)}xx`)) return [];
  return [`expected the status ${wanted.join(" or ")}, got ${status} with ${show(textOf(response))}`];
}

/** Compares content types without their parameters. A list field, such as `Allow`, must contain all expected items. */
function headerProblems(header: Readonly<Record<string, string>> = {}, response: HttpResponse): readonly string[] {
  return Object.entries(header).flatMap(([name, want]) => {
    const actualValue = fieldOf(response.header, name);
    const items = (actualValue ?? "")
      .split(name === "content-type" ? ";" : ",")
      .map((item) => item.trim().toLowerCase());
    const isPresent = want.split(",").every((item) => items.includes(item.trim().toLowerCase()));
    return isPresent ? [] : [`${name}: expected ${show(want)}, got ${show(actualValue)}`];
  });
}

function jsonProblems(want: Json, response: HttpResponse): readonly string[] {
  const actualJson = parseJson(textOf(response));
  return actualJson === undefined
    ? [`expected JSON, got ${show(textOf(response))}`]
    : differences(want, actualJson, { response: true });
}

function memberProblems(name: string, want: Json, response: HttpResponse): readonly string[] {
  const actualJson = parseJson(textOf(response));
  return differences({ [name]: want }, isRecord(actualJson) ? { [name]: actualJson[name] } : actualJson, {
    response: true,
  });
}

function bytesProblems(base64: string, response: HttpResponse): readonly string[] {
  const actualBase64 = response.body.toString("base64");
  return actualBase64 === base64 ? [] : [`expected the bytes ${show(base64)}, got ${show(actualBase64)}`];
}

/** Returns the `Echo` in a response. The echo's message is the JSON that the backend wrote. */
function echoOf(response: HttpResponse): { readonly rpc: string; readonly message: unknown } | undefined {
  const value = parseJson(textOf(response));
  if (!isRecord(value) || typeof value["rpc"] !== "string") return undefined;
  const { rpc, message } = value;
  return { rpc, message: typeof message === "string" ? parseJson(message) : undefined };
}

function textOf(response: HttpResponse): string {
  return response.body.toString("utf8");
}
