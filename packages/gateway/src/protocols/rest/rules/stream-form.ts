import type { DescMessage } from "@bufbuild/protobuf";
import { findProtoField } from "./field-path.ts";

/** How the messages of a server stream are written on REST. */
export interface StreamForm {
  readonly contentType: string;
  /** One message on each line, or each as the `result` of an object; one array of them; or Server-Sent Events. */
  readonly kind: "lines" | "results" | "array" | "events";
  /** Further header fields for proxies and browsers: name, value, … */
  readonly fields: readonly string[];
  /**
   * Sent after a while without messages, so that no proxy takes the connection for dead; `undefined` where a reader
   * could take it for a message, as it could take a line with nothing but a space.
   */
  readonly heartbeat: Uint8Array | undefined;
  /** Writes a message that follows `before` others. */
  message(json: string, before: number): string;
  /** Writes the end of a stream of `before` messages, with the error record if it failed. */
  end(before: number, errorJson: string | undefined): string;
}

const utf8 = new TextEncoder();

// Newline-delimited JSON. An error is the last line, `{"@error": …}`.
const ndjson: StreamForm = {
  contentType: "application/x-ndjson",
  kind: "lines",
  fields: [],
  heartbeat: undefined,
  message: (json) => `${json}\n`,
  end: (_, errorJson) => (errorJson === undefined ? "" : `{"@error":${errorJson}}\n`),
};

const jsonLines: StreamForm = { ...ndjson, contentType: "application/jsonl" };

// What grpc-gateway sends: newline-delimited JSON where each line is a `result`, and the last one may be an `error`.
const resultLines: StreamForm = {
  ...ndjson,
  contentType: "application/json",
  kind: "results",
  message: (json) => `{"result":${json}}\n`,
  end: (_, errorJson) => (errorJson === undefined ? "" : `{"error":${errorJson}}\n`),
};

// One JSON array. An error is the last element, `{"@error": …}`.
const jsonArray: StreamForm = {
  ...ndjson,
  contentType: "application/json",
  kind: "array",
  // White space inside of a JSON text (RFC 8259 §2).
  heartbeat: utf8.encode(" "),
  message: (json, before) => (before === 0 ? `[${json}` : `,\n${json}`),
  end: (before, errorJson) => {
    const open = before === 0 ? "[" : "";
    return errorJson === undefined ? `${open}]` : `${open}${before === 0 ? "" : ",\n"}{"@error":${errorJson}}]`;
  },
};

// HTML, "Server-sent events": the time after which a client reconnects, unless it has learned that the stream is over.
const retryMs = 3000;

// Server-Sent Events: each message is a `message` event, and the last event is `end` or `error`.
const serverSentEvents: StreamForm = {
  contentType: "text/event-stream",
  kind: "events",
  fields: ["cache-control", "no-cache", "x-accel-buffering", "no"],
  heartbeat: utf8.encode(":\n\n"),
  message: (json, before) => `${before === 0 ? `retry: ${retryMs}\n` : ""}data: ${json}\n\n`,
  end: (_, errorJson) =>
    errorJson === undefined ? "event: end\ndata: {}\n\n" : `event: error\ndata: ${errorJson}\n\n`,
};

// Generated clients accept all forms that are described, and many of them understand only JSON, which hence is first.
const forms: StreamForms = { offered: [jsonArray, ndjson, jsonLines, serverSentEvents], usual: ndjson };
const formsInResults: StreamForms = {
  offered: [
    resultLines,
    { ...resultLines, contentType: ndjson.contentType },
    { ...resultLines, contentType: jsonLines.contentType },
    serverSentEvents,
  ],
  usual: resultLines,
};

/** The forms in which a service offers its streams. */
export interface StreamForms {
  /** In the order of the description: of those that a client names with equal weights, the first is taken. */
  readonly offered: readonly StreamForm[];
  /** What a client gets that names none. */
  readonly usual: StreamForm;
}

/**
 * Returns the forms in which a service offers its streams.
 *
 * @param inResults - whether messages and errors are wrapped as by grpc-gateway
 */
export function streamFormsOf(inResults: boolean): StreamForms {
  return inResults ? formsInResults : forms;
}

/**
 * Returns whether a message of this type, or its field that is the body, could look like an error in a stream: because
 * it can be any JSON, or has a member `@error`.
 */
export function mayLookLikeError(output: DescMessage, responseBody: string): boolean {
  const field = findProtoField(output, responseBody);
  if (field?.fieldKind === "map") return true;
  const message = field === undefined ? output : field.fieldKind === "message" ? field.message : undefined;
  if (message === undefined) return false;
  const isAnyJson = message.typeName === "google.protobuf.Struct" || message.typeName === "google.protobuf.Value";
  return isAnyJson || message.fields.some(({ jsonName }) => jsonName === "@error");
}
