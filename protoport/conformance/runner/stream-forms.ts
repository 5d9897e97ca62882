import { isRecord } from "./case.ts";
import type { HttpResponse } from "./response.ts";
import { fieldOf } from "./response.ts";
import { bracketsOf, parseJson } from "./json-text.ts";

/** A stream's messages, and whether an error ended it. */
export type StreamedItems = { readonly items: readonly unknown[]; readonly hasError: boolean };

/**
 * Parses a message stream in any common format. The formats are Server-Sent Events, a JSON array, and consecutive JSON
 * values, such as lines. Each message may be in an envelope `{"result": …}`. A truncated body, and an event whose name
 * contains "error", are stream errors. An envelope `{"error": …}` or `{"@error": …}`, or a google.rpc.Status, after the
 * last message is a stream error too. Returns `undefined` for any other format.
 */
export function readStream(response: HttpResponse): StreamedItems | undefined {
  const text = response.body.toString("utf8");
  const isEvents = /^text\/event-stream\b/i.test(fieldOf(response.header, "content-type") ?? "");
  const values = isEvents ? readEvents(text) : readValues(text);
  if (values === undefined) return response.isComplete ? undefined : { items: [], hasError: true };
  const items = values.map((value) => (hasOnly(value, "result") ? value["result"] : value));
  const last = items.at(-1);
  const endsWithError = hasOnly(last, "error") || hasOnly(last, "@error") || isStatus(last);
  return { items: endsWithError ? items.slice(0, -1) : items, hasError: endsWithError || !response.isComplete };
}

function hasOnly(value: unknown, key: string): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && Object.keys(value).length === 1 && key in value;
}

function isStatus(value: unknown): boolean {
  return isRecord(value) && typeof value["code"] === "number" && typeof value["message"] === "string";
}

// An event's data may have several lines. An event without data is ignored (WHATWG HTML §9.2.6).
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

/** Splits consecutive objects, with or without white space between them. */
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
