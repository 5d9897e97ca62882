import { StoreOpenError } from "../../contract/store-open-error.ts";
import type { StoreProblem } from "../../contract/store-health.ts";
import { sqlStateOf } from "../server/sql-state.ts";
import { verdictOn } from "./fault-table.ts";

/**
 * Returns the problem for a server or connection error. The problem is always temporary, because servers are restarted,
 * replaced and migrated while clients run. A problem for an operator, such as a missing privilege, is not brief.
 */
export function problemOf(fault: unknown): StoreProblem {
  const mayBeBrief = !(fault instanceof StoreOpenError) && verdictOn(fault) !== "fail";
  return { text: textOf(fault), isTemporary: true, mayBeBrief };
}

// Reasons why the server cancelled a statement. The server's message lacks the reason, and may be translated.
const reasons: ReadonlyMap<string | undefined, string> = new Map([
  ["55P03", "another transaction holds a lock on a table or its rows: "],
  ["57014", "a statement was cancelled, probably because it took too long: "],
]);

function textOf(fault: unknown): string {
  if (fault instanceof StoreOpenError) return fault.message;
  // If a host name has several addresses, each address has its own error, and there is no common message.
  if (fault instanceof AggregateError) return fault.errors.map(textOf).join("; ");
  if (!(fault instanceof Error)) return String(fault);
  const state = sqlStateOf(fault);
  const advice = state === "42501" && fault.message.includes(replicationRole) ? triggersOff : "";
  return `${reasons.get(state) ?? ""}${fault.message}${advice}`;
}

const replicationRole = "session_replication_role";

// Advice for a user without the privilege to enable triggers. Otherwise, the store itself enables triggers.
const triggersOff =
  `; with its current value, triggers and foreign keys do not protect plants: run ALTER ROLE … RESET ${replicationRole}, ` +
  `or GRANT SET ON PARAMETER ${replicationRole}`;
