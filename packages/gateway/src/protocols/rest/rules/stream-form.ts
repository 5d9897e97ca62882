import type { DescMessage } from "@bufbuild/protobuf";
import type { ErrorForm } from "./error-forms.ts";
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

/** Writes an error as the value that ends a stream. */
type EndingError = (errorJson: string) => string;

const markedError: EndingError = (errorJson) => `{"@error":${errorJson}}`;
// An error of Google's APIs is an object with one member already, `{"error": …}`.
const plainError: EndingError = (errorJson) => errorJson;

/** Newline-delimited JSON. An error is the last line. */
function lines(contentType: string, endingError: EndingError): StreamForm {
  return {
    contentType,
    kind: "lines",
    fields: [],
    heartbeat: undefined,
    message: (json) => `${json}\n`,
    end: (_, errorJson) => (errorJson === undefined ? "" : `${endingError(errorJson)}\n`),
  };
}

/** What grpc-gateway sends: newline-delimited JSON where each line is a `result`, and the last one may be an `error`. */
function resultLines(contentType: string): StreamForm {
  return {
    ...lines(contentType, (errorJson) => `{"error":${errorJson}}`),
    kind: "results",
    message: (json) => `{"result":${json}}\n`,
  };
}

/** One JSON array. An error is the last element. */
function jsonArray(endingError: EndingError): StreamForm {
  return {
    contentType: "application/json",
    kind: "array",
    fields: [],
    // White space inside of a JSON text (RFC 8259 §2).
    heartbeat: utf8.encode(" "),
    message: (json, before) => (before === 0 ? `[${json}` : `,\n${json}`),
    end: (before, errorJson) => {
      const open = before === 0 ? "[" : "";
      return errorJson === undefined ? `${open}]` : `${open}${before === 0 ? "" : ",\n"}${endingError(errorJson)}]`;
    },
  };
}

// HTML, "Server-sent events": the time after which a client reconnects, unless it has learned that the stream is over.
const retryMs = 3000;

/** Server-Sent Events: each message is a `message` event. An error is an `error` event, and an end may be an `end` event. */
function serverSentEvents(endEvent: boolean): StreamForm {
  const end = endEvent ? "event: end\ndata: {}\n\n" : "";
  return {
    contentType: "text/event-stream",
    kind: "events",
    fields: ["cache-control", "no-cache", "x-accel-buffering", "no"],
    heartbeat: utf8.encode(":\n\n"),
    message: (json, before) => `${before === 0 ? `retry: ${retryMs}\n` : ""}data: ${json}\n\n`,
    end: (_, errorJson) => (errorJson === undefined ? end : `event: error\ndata: ${errorJson}\n\n`),
  };
}

const ndjsonType = "application/x-ndjson";
const jsonLinesType = "application/jsonl";

/** The forms in which a service offers its streams. */
export interface StreamForms {
  /** In the order of the description: of those that a client names with equal weights, the first is taken. */
  readonly offered: readonly StreamForm[];
  /** What a client gets that names none. */
  readonly usual: StreamForm;
}

/** What the forms of streams depend on. */
export interface StreamOptions {
  /** Whether messages and errors are wrapped as by grpc-gateway. */
  readonly streamInResults: boolean;
  /** Whether a client that names no form gets an array. */
  readonly arrayStreams: boolean;
  readonly errors: ErrorForm;
  /** Whether a stream of Server-Sent Events ends with an `end` event, so that pages do not reconnect. */
  readonly endEvent: boolean;
}

/** Returns the forms in which a service offers its streams. */
export function streamFormsOf({ streamInResults, arrayStreams, errors, endEvent }: StreamOptions): StreamForms {
  const events = serverSentEvents(endEvent);
  if (streamInResults) {
    const usual = resultLines("application/json");
    return { offered: [usual, resultLines(ndjsonType), resultLines(jsonLinesType), events], usual };
  }
  const endingError = errors === "google" ? plainError : markedError;
  const [array, ndjson] = [jsonArray(endingError), lines(ndjsonType, endingError)];
  // Generated clients accept all forms that are described, and many of them understand only JSON, which hence is first.
  const offered = [array, ndjson, lines(jsonLinesType, endingError), events];
  return { offered, usual: arrayStreams ? array : ndjson };
}

/**
 * Returns whether a message of this type, or its field that is the body, could look like an error in a stream: because
 * it can be any JSON, or has the member that marks an error.
 */
export function mayLookLikeError(output: DescMessage, responseBody: string, errors: ErrorForm): boolean {
  const field = findProtoField(output, responseBody);
  if (field?.fieldKind === "map") return true;
  const message = field === undefined ? output : field.fieldKind === "message" ? field.message : undefined;
  if (message === undefined) return false;
  const isAnyJson = message.typeName === "google.protobuf.Struct" || message.typeName === "google.protobuf.Value";
  const marker = errors === "google" ? "error" : "@error";
  return isAnyJson || message.fields.some(({ jsonName }) => jsonName === marker);
}
