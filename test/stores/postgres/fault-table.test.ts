import { describe, expect, test } from "vitest";
import { faultTable, verdictOn } from "../../../src/stores/postgres/delete/fault-table.ts";

/** What the client throws when the server refuses. */
function refusal(sqlState: string): Error {
  return Object.assign(new Error("refused"), { code: sqlState, severity: "ERROR" });
}

/** A fault, by default a missing right, and where it comes up, as the server says it, the innermost first. */
function within(where: string, sqlState = "42501"): Error {
  return Object.assign(refusal(sqlState), { where });
}

const trigger = `SQL statement "WITH dropped AS (SELECT OLD.id)
  INSERT INTO audit.log SELECT id FROM dropped"
PL/pgSQL function audit() line 2 at SQL statement`;
const onCitus = `SQL statement "WITH dropped AS (DELETE FROM plants WHERE id = ANY(ids) RETURNING id)
        SELECT array_agg(id) FROM dropped"
PL/pgSQL function plants_1.plantstore_delete(bigint,bigint[]) line 18 at SQL statement
while executing command on db-1:5432`;

describe("the verdict on a fault", () => {
  test.each(faultTable)("of SQLSTATE $sqlState is $verdict: $why", ({ sqlState, verdict }) => {
    expect(verdictOn(refusal(sqlState.padEnd(5, "0")))).toBe(verdict);
  });

  test.each([
    { name: "a code beats its class", fault: refusal("53300"), verdict: "reconnect" },
    {
      name: "an idempotency key that is used at the same time keeps no plant",
      fault: Object.assign(refusal("23505"), { constraint: "deletions_by_key" }),
      verdict: "retry",
    },
    ...["deletions_by_keyword", "old_deletions_by_key"].map((constraint) => ({
      name: `a key of somebody else's index does: ${constraint}`,
      fault: Object.assign(refusal("23505"), { constraint }),
      verdict: "split",
    })),
    { name: "a right that a trigger lacks keeps a plant", fault: within(trigger), verdict: "split" },
    { name: "so does a SQLSTATE of its own", fault: within(trigger, "PLANT"), verdict: "split" },
    {
      name: "what concurrent transactions undo in a trigger keeps none",
      fault: within(trigger, "40001"),
      verdict: "retry",
    },
    {
      name: "a right that a trigger lacks on Citus does, too",
      fault: within(`${trigger}\n${onCitus}`),
      verdict: "split",
    },
    { name: "a right that our function on Citus lacks keeps them all", fault: within(onCitus), verdict: "fail" },
    { name: "so does one to call it", fault: within("while executing command on db-1:5432"), verdict: "fail" },
    { name: "a code without a row has its class's verdict", fault: refusal("08P01"), verdict: "unknown" },
    { name: "what has no row may have been committed", fault: refusal("XX000"), verdict: "unknown" },
    {
      name: "the network's codes are no SQLSTATEs",
      fault: Object.assign(new Error("reset"), { code: "ECONNRESET" }),
      verdict: "unknown",
    },
    { name: "a fault without a code may come after the commit", fault: new Error("timeout"), verdict: "unknown" },
    { name: "what is no error may, too", fault: "gone", verdict: "unknown" },
  ])("$name", ({ fault, verdict }) => {
    expect(verdictOn(fault)).toBe(verdict);
  });

  test("names each SQLSTATE once", () => {
    expect(new Set(faultTable.map(({ sqlState }) => sqlState)).size).toBe(faultTable.length);
  });
});
