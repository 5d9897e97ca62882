import { type HeaderFields, PreparedFields } from "../carriers/index.ts";

/** How the end of an answer is told (RFC 9112 §6.3). */
export type Framing =
  /** By its `Content-Length`. */
  | number
  | "chunked"
  /** By the end of the connection, as HTTP/1.0 has it. */
  | "close"
  /** The status or the method allows no body. */
  | "none";

/**
 * Returns the fields as they are sent, without those of the connection and of the framing.
 *
 * @throws TypeError for a field that HTTP does not allow (RFC 9110 §5.1, §5.5): it might begin another answer
 */
export function fieldLines(fields: HeaderFields): string {
  if (fields instanceof PreparedFields) return (fields.lines ??= toLines(fields));
  return fields.length === 0 ? "" : toLines(fields);
}

function toLines(fields: HeaderFields): string {
  let lines = "";
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (!fieldName.test(name)) throw new TypeError(`"${name}" is not allowed as the name of a field`);
    if (!fieldValue.test(value)) {
      throw new TypeError(`the value of "${name}" has a character that is not allowed in fields`);
    }
    if (!connectionFields.test(name)) lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// A character above U+00FF is no byte: truncated to one, it might be a line break.
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;
// RFC 9110 §7.6.1, and how the end of the answer is told, which has one teller.
const connectionFields = /^(?:connection|content-length|keep-alive|transfer-encoding|upgrade)$/i;

/**
 * Returns the status line. Its reason phrase is for people alone (RFC 9112 §4).
 *
 * @throws RangeError for what is no status of a final answer (RFC 9110 §15)
 */
export function statusLine(httpStatus: number): string {
  if (!Number.isInteger(httpStatus) || httpStatus < 200 || httpStatus > 599) {
    throw new RangeError(`${httpStatus} is not the status of an answer`);
  }
  return (statusLines[httpStatus] ??= `HTTP/1.1 ${httpStatus} ${reasonPhrases[httpStatus] ?? ""}\r\n`);
}

/** Those of RFC 9110 §15 and RFC 6585, and nginx's 499, which gRPC's Canceled is on REST. To load node's list takes 10 ms. */
const reasonPhrases: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  203: "Non-Authoritative Information",
  204: "No Content",
  205: "Reset Content",
  206: "Partial Content",
  300: "Multiple Choices",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  411: "Length Required",
  412: "Precondition Failed",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  416: "Range Not Satisfiable",
  417: "Expectation Failed",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  426: "Upgrade Required",
  428: "Precondition Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  499: "Client Closed Request",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  505: "HTTP Version Not Supported",
};

const statusLines: Record<number, string> = {};

/** Returns the lines that tell how the answer ends. */
export function framingLines(framing: Framing): string {
  if (typeof framing === "number") return `content-length: ${framing}\r\n`;
  return framing === "chunked" ? "transfer-encoding: chunked\r\n" : "";
}

/** The last lines of every head: the date (RFC 9110 §6.6.1), and what becomes of the connection (RFC 9112 §9.3). */
export class LastLines {
  readonly #keepAlive: string;
  #second = 0;
  #persistent = "";
  #last = "";

  /** @param idleTimeoutMs - how long an idle connection is kept, which clients are told to the second */
  constructor(idleTimeoutMs: number) {
    const seconds = Math.floor(idleTimeoutMs / 1000);
    this.#keepAlive = `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n\r\n`;
  }

  /** Returns them, with the empty line. */
  now(persistent: boolean): string {
    const second = Math.trunc(Date.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      const date = `date: ${new Date(second * 1000).toUTCString()}\r\n`;
      this.#persistent = date + this.#keepAlive;
      this.#last = `${date}connection: close\r\n\r\n`;
    }
    return persistent ? this.#persistent : this.#last;
  }
}
