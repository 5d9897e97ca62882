/** The longest `baggage` that is read, and the most members of it (W3C Baggage §3.3.2 asks for these at least). */
const baggageLengthMax = 8_192;
const membersMax = 64;

// §3.3.1: a key is a token of HTTP; a value has neither quotes, commas, semicolons nor backslashes.
const memberForm = /^\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*=\s*([\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*)\s*(?:;|$)/;

/**
 * Reads the caller's `baggage`: names and values that it passes along a trace. Properties and malformed members are
 * left out. A field that is too long is ignored as a whole, since cutting it could change a value.
 */
export function readBaggage(field: string | null): ReadonlyMap<string, string> {
  const entries = new Map<string, string>();
  if (field === null || field.length > baggageLengthMax) return entries;
  for (const member of field.split(",", membersMax)) {
    const [, key, value] = memberForm.exec(member) ?? [];
    const decoded = value === undefined ? undefined : percentDecoded(value);
    if (key !== undefined && decoded !== undefined) entries.set(key, decoded);
  }
  return entries;
}

/** Decodes a percent-encoded text; returns `undefined` if it is malformed. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
