import { colon, isRegularField } from "../http2/index.ts";

/** A response's header or trailer section. Must not be changed, because responses may share one object. */
export interface ResponseSection {
  /** All fields, including `:status`: name, value, name, value, … */
  readonly fields: readonly string[];
  /** 0 in a trailer section, which has no `:status`. */
  readonly httpStatus: number;
}

/**
 * Parses a response section (RFC 9113 §8.2, §8.3.2).
 *
 * @returns `undefined` if it is malformed
 */
export function readResponseSection(fields: readonly string[]): ResponseSection | undefined {
  let httpStatus = 0;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (name.charCodeAt(0) === colon) {
      // §8.3: the only pseudo-header response field, once, before the regular fields.
      if (i > 0 || name !== ":status" || !statusSyntax.test(value)) return undefined;
      httpStatus = Number(value);
    } else if (!isRegularField(name, value)) return undefined;
  }
  return { fields, httpStatus };
}

// Three digits (RFC 9110 §15). Statuses above 599 are invalid, but are handled as server errors.
const statusSyntax = /^[1-9][0-9]{2}$/;
