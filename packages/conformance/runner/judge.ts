import { type Case, type Expectation, isRecord, type Json } from "./case.ts";
import { type Answer, fieldOf } from "./answer.ts";
import { differences, show } from "./compare.ts";
import { parseJson } from "./json-text.ts";
import { readStream } from "./stream-forms.ts";

/** What an answer is worth. */
export type Verdict =
  /** As expected, or as the standard also allows: by the expectation of that number in `or`. */
  | { readonly isRight: true; readonly alternative?: number }
  /** What is wrong with it, a line each. */
  | { readonly isRight: false; readonly problems: readonly string[] };

/** Compares an answer with what a case expects. */
export function judge({ expect, or }: Case, answer: Answer): Verdict {
  const problems = problemsOf(expect, answer);
  if (problems.length === 0) return { isRight: true };
  const alternative = or.findIndex((each) => problemsOf(each, answer).length === 0);
  return alternative === -1 ? { isRight: false, problems } : { isRight: true, alternative };
}

function problemsOf(want: Expectation, answer: Answer): readonly string[] {
  if ("items" in want) return streamProblems(want.items, want.error === true, answer);
  // RFC 9112 §8: what is cut off is not taken for the whole, even if it can be read.
  const cutOff = answer.isWhole ? [] : [`the answer broke off behind ${answer.body.length} bytes of its body`];
  return [...wholeProblems(want, answer), ...cutOff];
}

function wholeProblems(
  want: Exclude<Expectation, { readonly items: readonly Json[] }>,
  answer: Answer,
): readonly string[] {
  if ("rpc" in want) return echoProblems(want.rpc, want.message, answer);
  if ("refused" in want) return [...refusalProblems(want.refused, answer), ...headerProblems(want.header, answer)];
  const { status, header, json, has = {}, base64, empty } = want;
  return [
    ...statusProblems([status], answer),
    ...headerProblems(header, answer),
    ...(json === undefined ? [] : jsonProblems(json, answer)),
    ...Object.entries(has).flatMap(([name, value]) => memberProblems(name, value, answer)),
    ...(base64 === undefined ? [] : bytesProblems(base64, answer)),
    ...(empty === true && answer.body.length > 0 ? [`expected no body, got ${show(textOf(answer))}`] : []),
  ];
}

function echoProblems(rpc: string, message: Json, answer: Answer): readonly string[] {
  const problems = statusProblems(["200"], answer);
  if (problems.length > 0) return problems;
  const echo = echoOf(answer);
  if (echo === undefined) return [`expected the Echo of ${rpc}, got ${show(textOf(answer))}`];
  if (echo.rpc !== rpc) return [`expected the RPC ${rpc}, got ${echo.rpc}`];
  return differences(message, echo.message, { answer: false });
}

function refusalProblems(statuses: readonly string[], answer: Answer): readonly string[] {
  const echo = echoOf(answer);
  if (answer.status < 300 && echo !== undefined) {
    return [`the backend must not be asked, but ${echo.rpc} was, with ${show(echo.message)}`];
  }
  return statusProblems(statuses, answer);
}

function streamProblems(items: readonly Json[], error: boolean, answer: Answer): readonly string[] {
  // The error may come before anything of the stream is sent, and is an answer of its own then.
  if (error && items.length === 0 && answer.status >= 400) return [];
  const problems = statusProblems(["200"], answer);
  if (problems.length > 0) return problems;
  const stream = readStream(answer);
  if (stream === undefined) return [`expected a stream of messages, got ${show(textOf(answer))}`];
  return [
    ...differences(items, stream.items, { answer: true }),
    ...(stream.hasError === error ? [] : [`the stream ${error ? "must end" : "ended"} with an error`]),
  ];
}

function statusProblems(wanted: readonly string[], answer: Answer): readonly string[] {
  const status = String(answer.status);
  if (wanted.some((each) => each === status || each === `${status.slice(0, 1)}xx`)) return [];
  return [`expected the status ${wanted.join(" or ")}, got ${status} with ${show(textOf(answer))}`];
}

/** A content type is compared without its parameters; of a list (`Allow`) every item has to be there. */
function headerProblems(header: Readonly<Record<string, string>> = {}, answer: Answer): readonly string[] {
  return Object.entries(header).flatMap(([name, want]) => {
    const got = fieldOf(answer.header, name);
    const items = (got ?? "").split(name === "content-type" ? ";" : ",").map((item) => item.trim().toLowerCase());
    const isThere = want.split(",").every((item) => items.includes(item.trim().toLowerCase()));
    return isThere ? [] : [`${name}: expected ${show(want)}, got ${show(got)}`];
  });
}

function jsonProblems(want: Json, answer: Answer): readonly string[] {
  const got = parseJson(textOf(answer));
  return got === undefined ? [`expected JSON, got ${show(textOf(answer))}`] : differences(want, got, { answer: true });
}

function memberProblems(name: string, want: Json, answer: Answer): readonly string[] {
  const got = parseJson(textOf(answer));
  return differences({ [name]: want }, isRecord(got) ? { [name]: got[name] } : got, { answer: true });
}

function bytesProblems(base64: string, answer: Answer): readonly string[] {
  const got = answer.body.toString("base64");
  return got === base64 ? [] : [`expected the bytes ${show(base64)}, got ${show(got)}`];
}

/** The Echo that an answer is; the message in it is the JSON of the backend. */
function echoOf(answer: Answer): { readonly rpc: string; readonly message: unknown } | undefined {
  const value = parseJson(textOf(answer));
  if (!isRecord(value) || typeof value["rpc"] !== "string") return undefined;
  const { rpc, message } = value;
  return { rpc, message: typeof message === "string" ? parseJson(message) : undefined };
}

function textOf(answer: Answer): string {
  return answer.body.toString("utf8");
}
