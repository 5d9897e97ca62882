import { createHash } from "node:crypto";

/** Maximum number of body bytes that are shown. The rest is replaced by a hash. */
const maxShownBytes = 2048;

/** Returns bytes as text. Bytes that are not printable ASCII are escaped. */
export function renderBytes(bytes: Uint8Array): string {
  const shown = escape(Buffer.from(bytes.subarray(0, maxShownBytes)).toString("latin1"));
  if (bytes.byteLength <= maxShownBytes) return shown;
  const hash = createHash("sha256").update(bytes).digest("hex");
  return `${shown}… (${bytes.byteLength} bytes, SHA-256 ${hash})`;
}

/** Returns header or trailer fields, each on a line. Values that differ from run to run are masked. */
export function renderFields(fields: readonly (readonly [name: string, value: string])[]): string {
  return fields.map(([name, value]) => `${maskField(`${escape(name)}: ${escape(value)}`)}\n`).join("");
}

/** Masks the date that node sends. */
export function maskField(line: string): string {
  return line.replace(/^(date: ).*/i, "$1(masked)");
}

function escape(text: string): string {
  return text.replaceAll(/[^\n -[\]-~]/g, (character) =>
    character === "\\" ? "\\\\" : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
