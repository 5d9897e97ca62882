import { StoreOpenError } from "../../store-open-error.ts";
import type { StoreProblem } from "../../store-health.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { verdictOn } from "./fault-table.ts";

/**
 * Describes a fault of the server or the connection for an operator. All such faults are temporary: servers are
 * restarted, replaced and migrated while their clients live. Only some may be brief: a missing right does not come back
 * within a second.
 */
export function problemOf(fault: unknown): StoreProblem {
  const mayBeBrief = !(fault instanceof StoreOpenError) && verdictOn(fault) !== "give-up";
  return { text: textOf(fault), isTemporary: true, mayBeBrief };
}

// What the server has waited for when it ends a statement, which its own text says in any language, or not at all.
const waits: ReadonlyMap<string | undefined, string> = new Map([
  ["55P03", "another transaction holds a lock on a table or its rows: "],
  ["57014", "a statement was cancelled: "],
]);

function textOf(fault: unknown): string {
  if (fault instanceof StoreOpenError) return fault.message;
  // A name with several addresses fails with one error per address, and no message of its own.
  if (fault instanceof AggregateError) return fault.errors.map(textOf).join("; ");
  if (!(fault instanceof Error)) return String(fault);
  const state = sqlStateOf(fault);
  const advice = state === "42501" && fault.message.includes(replicationRole) ? triggersOff : "";
  return `${waits.get(state) ?? ""}${fault.message}${advice}`;
}

const replicationRole = "session_replication_role";

// The store turns triggers on for itself where the user may do that.
const triggersOff =
  `; with its current value, triggers and foreign keys do not protect plants: run ALTER ROLE … RESET ${replicationRole}, ` +
  `or GRANT SET ON PARAMETER ${replicationRole}`;
