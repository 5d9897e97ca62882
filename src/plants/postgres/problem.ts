import { StoreOpenError } from "../errors.ts";
import type { StoreProblem } from "../health.ts";

/**
 * What a fault of the server or of the way to it means to an operator. All of them can pass: a server
 * is restarted, replaced and migrated while its clients live.
 */
export function problemOf(fault: unknown): StoreProblem {
  return { text: textOf(fault), passing: true };
}

function textOf(fault: unknown): string {
  if (fault instanceof StoreOpenError) return fault.message;
  // A name with several addresses fails with one error for each, and no message of its own.
  if (fault instanceof AggregateError) return fault.errors.map(textOf).join("; ");
  return fault instanceof Error ? fault.message : String(fault);
}
