import { colon, isRegularField } from "../http2/index.ts";

/** A response's header or trailer section. Callers must not change the object, because responses may share it. */
export interface ResponseSection {
  /** All fields, including `:status`: name, value, name, value, … */
  readonly fields: readonly string[];
  /** The response status, or 0 in a trailer section, which has no `:status`. */
  readonly httpStatus: number;
}

/** Parses a response section (RFC 9113 §8.2, §8.3.2). Returns `undefined` if the section is malformed. */
export function readResponseSection(fields: readonly string[]): ResponseSection | undefined {
  let httpStatus = 0;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (name.charCodeAt(0) === colon) {
      // §8.3: a response has only the pseudo-header field :status, once and before the regular fields.
      if (i > 0 || name !== ":status" || !statusSyntax.test(value)) return undefined;
      httpStatus = Number(value);
    } else if (!isRegularField(name, value)) return undefined;
  }
  return { fields, httpStatus };
}

// A status has three digits (RFC 9110 §15). Statuses above 599 are invalid, but are handled as server errors.
const statusSyntax = /^[1-9][0-9]{2}$/;
