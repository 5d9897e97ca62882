import type { DescMessage } from "@bufbuild/protobuf";
import type { ErrorForm } from "./error-forms.ts";
import { findProtoField } from "./field-path.ts";

/** A server stream format on REST. */
export interface StreamForm {
  readonly contentType: string;
  /** The stream's kind: a message per line, a `result` object per line, one message array, or Server-Sent Events. */
  readonly kind: "lines" | "results" | "array" | "events";
  /** Additional header fields for proxies and browsers: name, value, … */
  readonly fields: readonly string[];
  /**
   * Bytes that are sent when the stream is idle, so that proxies do not close the connection. `undefined` for formats
   * in which readers could mistake a heartbeat for a message, such as a line with only a space.
   */
  readonly heartbeat: Uint8Array | undefined;
  /** Formats a message. `before` is the number of earlier messages. */
  message(json: string, before: number): string;
  /** Formats the end of a stream after `before` messages, with the error record if the stream failed. */
  end(before: number, errorJson: string | undefined): string;
}

const itemUtf8 = new TextEncoder();

// nginx would keep messages until its buffer is full.
const unbuffered = ["x-accel-buffering", "no"];

/** Returns the last JSON value of a stream that has failed. */
type ErrorFormatter = (errorJson: string) => string;

const formatErrorMember: ErrorFormatter = (errorJson) => `{"@error":${errorJson}}`;
// An error in the format of Google's APIs is already an object with one member, `{"error": …}`.
const formatErrorUnchanged: ErrorFormatter = (errorJson) => errorJson;

/** Creates the format for newline-delimited JSON. An error is the last line. */
function linesForm(contentType: string, formatError: ErrorFormatter): StreamForm {
  return {
    contentType,
    kind: "lines",
    fields: unbuffered,
    heartbeat: undefined,
    message: (json) => `${json}\n`,
    end: (_, errorJson) => (errorJson === undefined ? "" : `${formatError(errorJson)}\n`),
  };
}

/** Creates the format of grpc-gateway. Each line of JSON is a `result`, and the last line may be an `error`. */
function resultLines(contentType: string): StreamForm {
  return {
    ...linesForm(contentType, (errorJson) => `{"error":${errorJson}}`),
    kind: "results",
    message: (json) => `{"result":${json}}\n`,
  };
}

/** Creates the format for one JSON array. An error is the last element. */
function jsonArray(formatError: ErrorFormatter): StreamForm {
  return {
    contentType: "application/json",
    kind: "array",
    fields: unbuffered,
    // White space is allowed between the elements (RFC 8259 §2).
    heartbeat: itemUtf8.encode(" "),
    message: (json, before) => (before === 0 ? `[${json}` : `,\n${json}`),
    end: (before, errorJson) => {
      const open = before === 0 ? "[" : "";
      return errorJson === undefined ? `${open}]` : `${open}${before === 0 ? "" : ",\n"}${formatError(errorJson)}]`;
    },
  };
}

// Milliseconds after which clients reconnect after a stream without an `end` event (HTML, "Server-sent events").
const retryMs = 3000;

/**
 * Creates the format for Server-Sent Events. A message is sent as a `message` event, and an error as an `error` event.
 * If `endEvent` is `true`, a stream without an error ends with an `end` event.
 */
export function serverSentEvents(endEvent: boolean): StreamForm {
  const end = endEvent ? "event: end\ndata: {}\n\n" : "";
  return {
    contentType: "text/event-stream",
    kind: "events",
    fields: ["cache-control", "no-cache", ...unbuffered],
    heartbeat: itemUtf8.encode(":\n\n"),
    message: (json, before) => `${before === 0 ? `retry: ${retryMs}\n` : ""}data: ${json}\n\n`,
    end: (_, errorJson) => (errorJson === undefined ? end : `event: error\ndata: ${errorJson}\n\n`),
  };
}

const ndjsonType = "application/x-ndjson";
const jsonLinesType = "application/jsonl";

/** The formats for a service's streams. */
export interface StreamForms {
  /** The formats in the order of the OpenAPI document. Of formats with equal weights, the first is chosen. */
  readonly offered: readonly StreamForm[];
  /** The format for clients that name no format. */
  readonly fallback: StreamForm;
}

interface StreamOptions {
  readonly streamInResults: boolean;
  readonly arrayStreams: boolean;
  readonly eventStreams: boolean;
  readonly errors: ErrorForm;
  readonly endEvent: boolean;
}

/** Returns the formats for a service's streams. */
export function streamFormsOf(options: StreamOptions): StreamForms {
  const { streamInResults, arrayStreams, eventStreams, errors, endEvent } = options;
  const events = serverSentEvents(endEvent);
  if (streamInResults) {
    const results = resultLines("application/json");
    const offered = [results, resultLines(ndjsonType), resultLines(jsonLinesType), events];
    return { offered, fallback: eventStreams ? events : results };
  }
  const formatError = errors === "google" ? formatErrorUnchanged : formatErrorMember;
  const [array, ndjson] = [jsonArray(formatError), linesForm(ndjsonType, formatError)];
  // JSON is first because generated clients accept all documented formats, and many clients can only parse JSON.
  const offered = [array, ndjson, linesForm(jsonLinesType, formatError), events];
  return { offered, fallback: eventStreams ? events : arrayStreams ? array : ndjson };
}

/**
 * Returns whether readers could mistake a message for an error in a stream. A message, or the field that is the body,
 * is ambiguous if it can have any JSON members, or has the member that marks an error.
 */
export function isAmbiguousWithError(output: DescMessage, responseBody: string, errors: ErrorForm): boolean {
  const field = findProtoField(output, responseBody);
  if (field?.fieldKind === "map") return true;
  const message = field === undefined ? output : field.fieldKind === "message" ? field.message : undefined;
  if (message === undefined) return false;
  const isAnyJson = message.typeName === "google.protobuf.Struct" || message.typeName === "google.protobuf.Value";
  const marker = errors === "google" ? "error" : "@error";
  return isAnyJson || message.fields.some(({ jsonName }) => jsonName === marker);
}
