import { describe, expect, test } from "vitest";
import { faultTable, verdictOn } from "../../../../../../src/stores/postgres/delete/fault-table.ts";

/** Returns a server error. */
function refusal(sqlState: string): Error {
  return Object.assign(new Error("refused"), { code: sqlState, severity: "ERROR" });
}

/** Returns an error, by default a missing privilege, with a context as the server sends it, the innermost first. */
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

describe("verdictOn", () => {
  test.each(faultTable)("for SQLSTATE $sqlState ($why), returns $verdict as the verdict", ({ sqlState, verdict }) => {
    expect(verdictOn(refusal(sqlState.padEnd(5, "0")))).toBe(verdict);
  });

  test.each(faultTable.filter(({ within: verdict }) => verdict !== undefined))(
    "for SQLSTATE $sqlState within a statement ($why), returns $within as the verdict",
    ({ sqlState, within: verdict }) => {
      expect(verdictOn(within(trigger, sqlState.padEnd(5, "0")))).toBe(verdict);
    },
  );

  test.each([
    { name: "prefers the row of a code to the row of its class", fault: refusal("53300"), verdict: "reconnect" },
    {
      name: "retries after a conflict on the index of idempotency keys",
      fault: Object.assign(refusal("23505"), { constraint: "deletions_by_key" }),
      verdict: "retry",
    },
    ...["deletions_by_keyword", "old_deletions_by_key"].map((constraint) => ({
      name: `splits a batch after a conflict on another index: ${constraint}`,
      fault: Object.assign(refusal("23505"), { constraint }),
      verdict: "split",
    })),
    {
      name: "isolates plants whose trigger raises a code without a row",
      fault: within(trigger, "2F003"),
      verdict: "isolate",
    },
    { name: "isolates plants whose trigger lacks a privilege", fault: within(trigger), verdict: "isolate" },
    {
      name: "splits a batch when a trigger raises an unknown SQLSTATE",
      fault: within(trigger, "PLANT"),
      verdict: "split",
    },
    {
      name: "retries after a serialization failure in a trigger",
      fault: within(trigger, "40001"),
      verdict: "retry",
    },
    {
      name: "isolates plants whose trigger on Citus lacks a privilege",
      fault: within(`${trigger}\n${onCitus}`),
      verdict: "isolate",
    },
    { name: "fails when our function on Citus lacks a privilege", fault: within(onCitus), verdict: "fail" },
    {
      name: "fails when the privilege to call our function on Citus is missing",
      fault: within("while executing command on db-1:5432"),
      verdict: "fail",
    },
    { name: "uses the row of the class for a code without a row", fault: refusal("08P01"), verdict: "unknown" },
    { name: "returns unknown for a code in a class of internal errors", fault: refusal("XX000"), verdict: "unknown" },
    {
      name: "returns unknown for an error code of the network",
      fault: Object.assign(new Error("reset"), { code: "ECONNRESET" }),
      verdict: "unknown",
    },
    { name: "returns unknown for an error without a code", fault: new Error("timeout"), verdict: "unknown" },
    { name: "returns unknown for a value that is not an error", fault: "gone", verdict: "unknown" },
  ])("$name", ({ fault, verdict }) => {
    expect(verdictOn(fault)).toBe(verdict);
  });

  test("has each SQLSTATE only once", () => {
    expect(new Set(faultTable.map(({ sqlState }) => sqlState)).size).toBe(faultTable.length);
  });
});
