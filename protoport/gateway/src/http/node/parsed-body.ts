import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { HttpProblem, toUtf8 } from "../exchange/index.ts";

/**
 * Returns the body that a body parser has stored in `request.rawBody` or `request.body`, without content coding. Bytes
 * and strings are returned unchanged, and parsed JSON is converted to JSON text. Returns `undefined` if the request has
 * no stored body, or if the parser has not read the whole body.
 *
 * The parser has read numbers as doubles, so an integer beyond 2^53 may differ from the sent integer. Integers beyond
 * 2^53 are written with the fraction `.50`. The JSON reader drops this fraction for a double field. For any other
 * field, the reader refuses the value with an error that names the field. The reader recognizes the fraction by the
 * trailing zero, which JSON.stringify never writes. Numbers beyond a double's range stay out of range in the JSON text.
 *
 * @returns an {@link HttpProblem} with status 400 for a value that is nested deeper than any message can be
 */
export function readParsedBody(
  request: IncomingMessage | Http2ServerRequest,
  contentType: string | null,
): Uint8Array | HttpProblem | undefined {
  if (!request.readableEnded) return undefined;
  const { rawBody, body }: { rawBody?: unknown; body?: unknown } = request as object;
  // Cloud functions and NestJS keep the raw body in addition to the parsed body.
  if (rawBody instanceof Uint8Array) return rawBody;
  if (body instanceof Uint8Array) return body;
  if (typeof body === "string") return toUtf8(body);
  // Checks the content type, because form parsers also create objects.
  if (body === undefined || contentType === null || !jsonType.test(contentType)) return undefined;
  const json = jsonOfParsed(body, 0);
  return json === undefined ? new HttpProblem("ERR_MESSAGE_INVALID", "the body is nested too deeply") : toUtf8(json);
}

const jsonType = /^[^;]*[/+]json[\t ]*(?:;|$)/i;

/** Maximum nesting depth of arrays and objects, as in Protobuf and the gateway's JSON reader. */
const maxLevels = 100;

/** Writes a value as JSON. Returns `undefined` for a value that is nested too deeply or contains itself. */
function jsonOfParsed(value: unknown, level: number): string | undefined {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return numberToJson(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (level === maxLevels) return undefined;
  const entries = Object.entries(value).map(([key, inner]) => {
    const json = jsonOfParsed(inner, level + 1);
    return json !== undefined && !Array.isArray(value) ? `${JSON.stringify(key)}:${json}` : json;
  });
  if (entries.includes(undefined)) return undefined;
  return Array.isArray(value) ? `[${entries.join()}]` : `{${entries.join()}}`;
}

function numberToJson(value: number): string {
  // JSON.stringify would write null for an infinite number, which leaves the field unset, so an int64 would be 0.
  if (!Number.isFinite(value)) return value < 0 ? "-1e999" : "1e999";
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return `${BigInt(value)}.50`;
  return Object.is(value, -0) ? "-0" : String(value);
}
