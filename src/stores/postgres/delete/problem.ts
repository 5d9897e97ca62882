import { StoreOpenError } from "../../contract/store-open-error.ts";
import type { StoreProblem } from "../../contract/store-health.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { verdictOn } from "./fault-table.ts";

/**
 * Describes a server or connection error for an operator. All such problems are temporary, because servers are
 * restarted, replaced and migrated while their clients run. Only some may be brief. A missing privilege, for example,
 * is not granted within a second.
 */
export function problemOf(fault: unknown): StoreProblem {
  const mayBeBrief = !(fault instanceof StoreOpenError) && verdictOn(fault) !== "fail";
  return { text: textOf(fault), isTemporary: true, mayBeBrief };
}

// Why the server cancelled a statement. Its message does not contain the reason, and may be translated.
const reasons: ReadonlyMap<string | undefined, string> = new Map([
  ["55P03", "another transaction holds a lock on a table or its rows: "],
  ["57014", "a statement was cancelled, probably because it took too long: "],
]);

function textOf(fault: unknown): string {
  if (fault instanceof StoreOpenError) return fault.message;
  // A name with several addresses fails with one error per address, and no common message.
  if (fault instanceof AggregateError) return fault.errors.map(textOf).join("; ");
  if (!(fault instanceof Error)) return String(fault);
  const state = sqlStateOf(fault);
  const advice = state === "42501" && fault.message.includes(replicationRole) ? triggersOff : "";
  return `${reasons.get(state) ?? ""}${fault.message}${advice}`;
}

const replicationRole = "session_replication_role";

// The store enables triggers itself if the user may do that.
const triggersOff =
  `; with its current value, triggers and foreign keys do not protect plants: run ALTER ROLE … RESET ${replicationRole}, ` +
  `or GRANT SET ON PARAMETER ${replicationRole}`;
