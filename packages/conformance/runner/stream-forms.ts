import { isRecord } from "./case.ts";
import type { Answer } from "./answer.ts";
import { fieldOf } from "./answer.ts";
import { bracketsOf, parseJson } from "./json-text.ts";

/** The messages of a stream, and whether an error ended it. */
export interface StreamedItems {
  readonly items: readonly unknown[];
  readonly hasError: boolean;
}

/**
 * Reads a stream of messages in any of the forms in use: Server-Sent Events, one JSON array, JSON values one after
 * another (lines among them), each as it is or in an envelope `{"result": …}`. An error is an event of that name, an
 * envelope `{"error": …}` or `{"@error": …}`, a google.rpc.Status behind the last message, or a body that breaks off.
 * Returns `undefined` when it is none of them.
 */
export function readStream(answer: Answer): StreamedItems | undefined {
  const text = answer.body.toString("utf8");
  const isEvents = /^text\/event-stream\b/i.test(fieldOf(answer.header, "content-type") ?? "");
  const values = isEvents ? readEvents(text) : readValues(text);
  if (values === undefined) return answer.isWhole ? undefined : { items: [], hasError: true };
  const items = values.map((value) => (hasOnly(value, "result") ? value["result"] : value));
  const last = items.at(-1);
  const endsWithError = hasOnly(last, "error") || hasOnly(last, "@error") || isStatus(last);
  return { items: endsWithError ? items.slice(0, -1) : items, hasError: endsWithError || !answer.isWhole };
}

function hasOnly(value: unknown, key: string): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && Object.keys(value).length === 1 && key in value;
}

function isStatus(value: unknown): boolean {
  return isRecord(value) && typeof value["code"] === "number" && typeof value["message"] === "string";
}

// An event of the stream has its data in lines; one without data is none (WHATWG HTML §9.2.6).
function readEvents(text: string): readonly unknown[] | undefined {
  const values: unknown[] = [];
  for (const block of text.replaceAll(/\r\n?/g, "\n").split("\n\n")) {
    const lines = block.split("\n");
    const data = lines.flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? []).join("\n");
    const name = lines.flatMap((line) => /^event: ?(.*)$/.exec(line)?.[1] ?? [])[0] ?? "message";
    const value = parseJson(data);
    if (name === "message" && value !== undefined) values.push(value);
    if (/error/i.test(name)) values.push({ error: value ?? null });
  }
  return values;
}

function readValues(text: string): readonly unknown[] | undefined {
  const whole = parseJson(text);
  if (Array.isArray(whole)) return whole;
  const values = splitValues(text).map(parseJson);
  return values.includes(undefined) ? undefined : values;
}

/** Splits objects that follow each other, with or without white space between them. */
function splitValues(text: string): readonly string[] {
  const pieces: string[] = [];
  let depth = 0;
  let begin = 0;
  for (const { index, step } of bracketsOf(text)) {
    depth += step;
    if (step === 1 || depth !== 0) continue;
    pieces.push(text.slice(begin, index + 1));
    begin = index + 1;
  }
  const rest = text.slice(begin).trim();
  return rest === "" ? pieces : [...pieces, rest];
}
