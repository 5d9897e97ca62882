import {
  type HeaderFields,
  PreparedHeaderFields,
  readHeaderField,
  reasonPhraseOf,
  requireField,
  fieldsSetByHttp1,
  statusesWithoutBody,
  maxTimerMs,
} from "../../http/index.ts";
import type { Http1RequestHead } from "./request-head.ts";

/** How a client determines where a response ends (RFC 9112 §6.3). */
export type Framing =
  /** The response has a `Content-Length` with this value. */
  | number
  | "chunked"
  /** The server closes the connection after the body, as in HTTP/1.0. */
  | "close"
  /** The response has no body, because the status or the method does not allow a body. */
  | "none";

/** Returns the framing for a response with an optional body in one piece. */
export function framingOf(httpStatus: number, body: Uint8Array | undefined): Framing {
  return statusesWithoutBody.has(httpStatus) ? framingOfNone(httpStatus) : (body?.byteLength ?? 0);
}

/** Returns the framing for a streamed body. */
export function framingOfStream(
  request: Http1RequestHead,
  httpStatus: number,
  fields: readonly HeaderFields[],
): Framing {
  if (statusesWithoutBody.has(httpStatus)) return framingOfNone(httpStatus);
  const length = readHeaderField(fields.flat(), "content-length");
  if (length !== null) return Number(length);
  if (request.httpMethod === "HEAD") return "none";
  return request.section.httpVersion === "1.0" ? "close" : "chunked";
}

// 204 and 304 responses end after the header section (RFC 9112 §6.3). 205 responses have length 0 (RFC 9110 §15.3.6).
function framingOfNone(httpStatus: number): Framing {
  return httpStatus === resetContent ? 0 : "none";
}

const resetContent = 205;

/** Returns the field lines that announce the connection's idle timeout (RFC 9112 §9.3). */
export function keepAliveLines(idleTimeoutMs: number): string {
  // The timeout may be infinite, which the field cannot express.
  const seconds = Math.floor(Math.min(idleTimeoutMs, maxTimerMs) / 1000);
  return `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n`;
}

/** The field line that announces that the connection will be closed. */
export const connectionCloseLine = "connection: close\r\n";

/**
 * Formats a response's head.
 *
 * @param httpStatus - an integer between 200 and 599
 * @param fields - arrays of fields, of which connection and framing fields are omitted
 * @param connectionLines - the result of {@link keepAliveLines}, or {@link connectionCloseLine}
 * @throws TypeError for a field that HTTP forbids (RFC 9110 §5.1, §5.5)
 */
export function formatResponseHead(
  httpStatus: number,
  fields: readonly HeaderFields[],
  framing: Framing,
  connectionLines: string,
): string {
  // Equivalent mutant: a cached line is the same as a new one.
  let head = (statusLines[httpStatus] ??= toStatusLine(httpStatus));
  // Equivalent mutant: an empty list has no lines, but `instanceof` in `fieldLines` takes as long as a short head.
  for (const list of fields) if (list.length > 0) head += fieldLines(list);
  if (typeof framing === "number") head += `content-length: ${framing}\r\n`;
  else if (framing === "chunked") head += "transfer-encoding: chunked\r\n";
  return `${head}${connectionLines}\r\n`;
}

/** Formats fields as lines, without connection and framing fields. Throws like {@link formatResponseHead}. */
export function fieldLines(fields: HeaderFields): string {
  return fields instanceof PreparedHeaderFields ? (fields.lines ??= toLines(fields)) : toLines(fields);
}

function toLines(fields: HeaderFields): string {
  let lines = "";
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    requireField(name, value);
    if (!fieldsSetByHttp1.has(name.toLowerCase())) lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

/** Cached status lines, by status. The statuses 200 to 599 need at most 400 lines with some 30 characters each. */
const statusLines: Record<number, string> = {};

/** Formats a status line. Clients ignore the reason phrase (RFC 9112 §4). */
function toStatusLine(httpStatus: number): string {
  return `HTTP/1.1 ${httpStatus} ${reasonPhraseOf(httpStatus) ?? ""}\r\n`;
}
