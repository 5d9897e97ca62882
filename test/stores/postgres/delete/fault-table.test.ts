import { describe, expect, test } from "vitest";
import { faultTable, verdictOn } from "../../../../src/stores/postgres/delete/fault-table.ts";

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
  test.each(faultTable)("returns $verdict for SQLSTATE $sqlState ($why)", ({ sqlState, verdict }) => {
    expect(verdictOn(refusal(sqlState.padEnd(5, "0")))).toBe(verdict);
  });

  test.each(faultTable.filter(({ within: verdict }) => verdict !== undefined))(
    "returns $within for SQLSTATE $sqlState within a statement ($why)",
    ({ sqlState, within: verdict }) => {
      expect(verdictOn(within(trigger, sqlState.padEnd(5, "0")))).toBe(verdict);
    },
  );

  test.each([
    { name: "uses a code's verdict instead of its class's verdict", fault: refusal("53300"), verdict: "reconnect" },
    {
      name: "returns retry after a conflict on the idempotency key index",
      fault: Object.assign(refusal("23505"), { constraint: "deletions_by_key" }),
      verdict: "retry",
    },
    ...["deletions_by_keyword", "old_deletions_by_key"].map((constraint) => ({
      name: `returns split after a conflict on the index ${constraint}`,
      fault: Object.assign(refusal("23505"), { constraint }),
      verdict: "split",
    })),
    {
      name: "returns isolate for a trigger's unknown code",
      fault: within(trigger, "2F003"),
      verdict: "isolate",
    },
    { name: "returns isolate for a trigger without a privilege", fault: within(trigger), verdict: "isolate" },
    {
      name: "returns split for a trigger's invented SQLSTATE",
      fault: within(trigger, "PLANT"),
      verdict: "split",
    },
    {
      name: "returns retry for a serialization failure in a trigger",
      fault: within(trigger, "40001"),
      verdict: "retry",
    },
    {
      name: "returns isolate for a trigger on Citus without a privilege",
      fault: within(`${trigger}\n${onCitus}`),
      verdict: "isolate",
    },
    { name: "returns fail for our function on Citus without a privilege", fault: within(onCitus), verdict: "fail" },
    {
      name: "returns fail without the privilege to call our function on Citus",
      fault: within("while executing command on db-1:5432"),
      verdict: "fail",
    },
    { name: "uses the class's verdict for a code without a verdict", fault: refusal("08P01"), verdict: "unknown" },
    { name: "returns unknown for an internal error", fault: refusal("XX000"), verdict: "unknown" },
    {
      name: "returns unknown for a network error",
      fault: Object.assign(new Error("reset"), { code: "ECONNRESET" }),
      verdict: "unknown",
    },
    { name: "returns unknown for an error without a code", fault: new Error("timeout"), verdict: "unknown" },
    { name: "returns unknown for a value that is not an error", fault: "gone", verdict: "unknown" },
  ])("$name", ({ fault, verdict }) => {
    expect(verdictOn(fault)).toBe(verdict);
  });

  test("has a single verdict for each SQLSTATE", () => {
    expect(new Set(faultTable.map(({ sqlState }) => sqlState)).size).toBe(faultTable.length);
  });
});
