/** Which parts does a multipart/form-data have? RFC 7578, in the syntax of RFC 2046 §5.1. No fields of messages. */
import type { ConnectError } from "@connectrpc/connect";
import { problem } from "../errors/index.ts";
import { decodeUtf8 } from "../json/index.ts";
import { formFieldsMax, tooManyFields } from "./form-body.ts";

/** The content type of forms that may have files. */
export const multipartType = "multipart/form-data";

/** Bytes of the header of a part: its name, the name of a file, a content type, and as much again. */
export const partHeaderMaxBytes: number = 8 * 1024;

/** One part of a form. */
export interface Part {
  readonly name: string;
  /** The name of the file; `undefined` for a part that is none, `""` for a file that nobody has chosen. */
  readonly fileName: string | undefined;
  readonly contentType: string | undefined;
  /** A view of the body. */
  readonly content: Uint8Array;
}

/** Returns whether a content type that was accepted is that of a form with parts. */
export function isMultipartType(contentType: string): boolean {
  return /^multipart\/form-data[\t ]*(?:;|$)/i.test(contentType);
}

// RFC 2046 §5.1.1: 1 to 70 of these, the last no space. Many clients leave out the quotation marks that some of them need.
const boundaryParameter =
  /;[\t ]*boundary=(?:"([\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?])"|([\w'()+,\-./:=?]{1,70}))[\t ]*(?=;|$)/gi;

/**
 * Reads all parts of a form, in a time and memory in proportion to its bytes, of which none is copied.
 *
 * @throws ConnectError `InvalidArgument` for a body that is no such form, or has more than {@link formFieldsMax} parts
 */
export function readParts(body: Uint8Array, contentType: string): readonly Part[] {
  const [found, another] = contentType.matchAll(boundaryParameter);
  const boundary = found?.[1] ?? found?.[2];
  if (boundary === undefined || another !== undefined)
    throw malformed("its type needs one boundary of RFC 2046 §5.1.1");
  const delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
  const parts: Part[] = [];
  // The first may begin the body, without a line break. What is before it, and behind the last, is ignored.
  const isFirst = matchLength(body, 0, delimiter, 2) === delimiter.length - 2;
  let at = isFirst ? delimiter.length - 2 : behind(body, delimiter, 0);
  for (;;) {
    const isLast = body[at] === hyphen && body[at + 1] === hyphen;
    const start = behindLine(body, isLast ? at + 2 : at);
    if (isLast) return parts;
    if (parts.length === formFieldsMax) throw tooManyFields();
    at = behind(body, delimiter, start);
    parts.push(readPart(body.subarray(start, at - delimiter.length)));
  }
}

const hyphen = 0x2d;
const carriageReturn = 0x0d;
const lineFeed = 0x0a;

function behind(body: Uint8Array, delimiter: Uint8Array, from: number): number {
  const at = find(body, delimiter, from);
  if (at < 0) throw malformed("it does not end with its boundary");
  return at + delimiter.length;
}

/** Returns where the line of a delimiter ends, which may have white space behind it. The last may end the body. */
function behindLine(body: Uint8Array, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x09) at++;
  if (at === body.length) return at;
  if (body[at] === carriageReturn && body[at + 1] === lineFeed) return at + 2;
  throw malformed("its boundary is followed by something else");
}

/**
 * Finds bytes that begin with a carriage return, and have none behind which they could begin anew: after the bytes that
 * match, the search goes on, so that no byte is compared more than twice.
 */
function find(body: Uint8Array, wanted: Uint8Array, from: number): number {
  for (let at = from; ;) {
    if (body[at] !== carriageReturn) at = body.indexOf(carriageReturn, at);
    if (at < 0) return -1;
    const matching = matchLength(body, at, wanted, 0);
    if (matching === wanted.length) return at;
    at += matching;
  }
}

/** Returns how many bytes match what is wanted from its index `skipped` on. */
function matchLength(body: Uint8Array, at: number, wanted: Uint8Array, skipped: number): number {
  let length = 0;
  while (skipped + length < wanted.length && body[at + length] === wanted[skipped + length]) length++;
  return length;
}

const emptyLine = new Uint8Array([carriageReturn, lineFeed, carriageReturn, lineFeed]);
const headerLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\0\r\n]*)$/;

function readPart(bytes: Uint8Array): Part {
  const end = find(bytes.subarray(0, partHeaderMaxBytes + emptyLine.length), emptyLine, 0);
  if (end < 0) throw malformed(`a part has no header that ends within ${partHeaderMaxBytes} bytes`);
  const fields = new Map<string, string>();
  for (const line of decodeText(bytes.subarray(0, end)).split("\r\n")) {
    const [, name = "", value = ""] = headerLine.exec(line) ?? [];
    // A field that comes twice would have two readings.
    if (name === "" || fields.has(name.toLowerCase())) throw malformed("the header of a part is not valid");
    fields.set(name.toLowerCase(), value.trim());
  }
  const contentType = fields.get("content-type") || undefined;
  if (/^multipart\//i.test(contentType ?? "")) throw malformed("a part has parts of its own");
  // RFC 7578 §4.7: deprecated. These three leave the bytes as they are.
  if (!/^(?:7bit|8bit|binary)?$/i.test(fields.get("content-transfer-encoding") ?? "")) {
    throw malformed("a part has a transfer encoding");
  }
  return { ...readDisposition(fields.get("content-disposition") ?? ""), contentType, content: bytes.subarray(end + 4) };
}

const parameter = /;[\t ]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+\-.^_`|~0-9A-Za-z]+))[\t ]*/y;

/** Reads `form-data; name="…"; filename="…"`. The encoded form of a file's name, which RFC 7578 §4.2 forbids, is ignored. */
function readDisposition(text: string): Pick<Part, "name" | "fileName"> {
  const [type = ""] = /^form-data[\t ]*/i.exec(text) ?? [];
  if (type === "") throw malformed("a part has no name");
  const values = new Map<string, string>();
  parameter.lastIndex = type.length;
  for (let at = type.length; at < text.length; at = parameter.lastIndex) {
    const [, key = "", quoted, token = ""] = parameter.exec(text) ?? [];
    if (key === "" || values.has(key.toLowerCase())) throw malformed("the header of a part is not valid");
    values.set(key.toLowerCase(), quoted === undefined ? token : unescapeName(quoted));
  }
  const name = values.get("name");
  if (name === undefined) throw malformed("a part has no name");
  return { name, fileName: values.get("filename") };
}

/** Undoes what clients do to names: browsers by HTML §4.10.21.8, others by RFC 9110 §5.6.4. */
function unescapeName(text: string): string {
  return text
    .replaceAll(/\\(["\\])/g, "$1")
    .replaceAll("%22", '"')
    .replaceAll("%0D", "\r")
    .replaceAll("%0A", "\n");
}

/** Decodes text of a form. @throws ConnectError `InvalidArgument` for bytes that are no UTF-8 */
export function decodeText(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes);
  } catch {
    throw malformed("it has text that is not UTF-8");
  }
}

function malformed(reason: string): ConnectError {
  return problem("ERR_MESSAGE_INVALID", `not multipart/form-data: ${reason}`);
}
