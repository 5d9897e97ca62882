import { describe, expect, test } from "vitest";
import { StoreOpenError } from "../../../../src/stores/contract/store-options.ts";
import { faultTable, problemOf, verdictOn } from "../../../../src/stores/postgres/delete/fault-table.ts";

const refusal = (sqlState: string): Error => Object.assign(new Error("refused"), { code: sqlState, severity: "ERROR" });

/** Returns an error, by default a missing privilege, with a context as the server sends it, the innermost first. */
const within = (where: string, sqlState = "42501"): Error => Object.assign(refusal(sqlState), { where });

const trigger = `SQL statement "WITH dropped AS (SELECT OLD.id)
  INSERT INTO audit.log SELECT id FROM dropped"
PL/pgSQL function audit() line 2 at SQL statement`;
const rows = [...faultTable].map(([sqlState, [verdict, inside]]) => ({ sqlState, verdict, inside }));

describe("verdictOn", () => {
  test.each(rows)("returns $verdict for SQLSTATE $sqlState", ({ sqlState, verdict }) => {
    expect(verdictOn(refusal(sqlState.padEnd(5, "0")))).toBe(verdict);
  });

  test.each(rows.filter(({ inside }) => inside !== undefined))(
    "returns $inside for SQLSTATE $sqlState within a statement",
    ({ sqlState, inside }) => expect(verdictOn(within(trigger, sqlState.padEnd(5, "0")))).toBe(inside),
  );

  test.each(
    // oxfmt-ignore
    [
      { name: "uses a code's verdict instead of its class's verdict", fault: refusal("25006"), verdict: "retry" },
      { name: "returns retry for a full disk", fault: refusal("53100"), verdict: "retry" },
      { name: "returns retry for a starting server", fault: refusal("57P03"), verdict: "retry" },
      { name: "returns unknown for an I/O error", fault: refusal("58030"), verdict: "unknown" },
      { name: "returns broken for a record above a limit", fault: refusal("54000"), verdict: "broken" },
      { name: "returns broken for a row that a trigger has changed", fault: refusal("27000"), verdict: "broken" },
      { name: "returns unknown for an I/O error in writing another table's block",
        fault: within("Schreibe Block 12 von Relation base/16384/16390", "58030"), verdict: "unknown" },
      { name: "returns broken for a trigger whose statement names a path",
        fault: within('SQL-Anweisung »SELECT "base/1"«', "58030"), verdict: "broken" },
      { name: "returns retry after a conflict on the idempotency key index",
        fault: Object.assign(refusal("23505"), { constraint: "deletions_by_key" }), verdict: "retry" },
      ...["deletions_by_keyword", "old_deletions_by_key"].map((constraint) => ({
        name: `returns refused after a conflict on the index ${constraint}`,
        fault: Object.assign(refusal("23505"), { constraint }), verdict: "refused" })),
      { name: "returns broken for a trigger's unknown code", fault: within(trigger, "2F003"), verdict: "broken" },
      { name: "returns broken for a trigger without a privilege", fault: within(trigger), verdict: "broken" },
      { name: "returns broken for an error whose context has the trigger before the parameters",
        fault: within(`${trigger}\nunnamed portal with parameters: $1 = '{1}'`), verdict: "broken" },
      { name: "returns broken for a trigger that cannot connect to another server", fault: within(trigger, "08001"),
        verdict: "broken" },
      { name: "returns refused for a trigger's invented SQLSTATE", fault: within(trigger, "PLANT"),
        verdict: "refused" },
      { name: "returns retry for a serialization failure in a trigger", fault: within(trigger, "40001"),
        verdict: "retry" },
      { name: "returns broken for a trigger on Citus without a privilege",
        fault: within(`${trigger}\nwhile executing command on db-1:5432`), verdict: "broken" },
      { name: "returns fail for our statement on Citus without a privilege",
        fault: within("while executing command on db-1:5432"), verdict: "fail" },
      { name: "uses the class's verdict for a code without a verdict", fault: refusal("08P01"), verdict: "unknown" },
      { name: "returns unknown for an internal error", fault: refusal("XX000"), verdict: "unknown" },
      { name: "returns unknown for a network error", fault: Object.assign(new Error("reset"), { code: "ECONNRESET" }),
        verdict: "unknown" },
      { name: "returns unknown for an error without a code", fault: new Error("timeout"), verdict: "unknown" },
      { name: "returns unknown for a value that is not an error", fault: "gone", verdict: "unknown" },
    ],
  )("$name", ({ fault, verdict }) => expect(verdictOn(fault)).toBe(verdict));
});

// A host name with several addresses fails with one error per address, and no common message.
const addresses = new AggregateError([new Error("connect ECONNREFUSED ::1:1"), new Error("connect ETIMEDOUT")]);

const cancelled = "a statement was cancelled, probably because it took too long";

test.each([
  ["a lost connection", new Error("lost"), "lost", true],
  ["a starting server", refusal("57P03"), "refused", true],
  ["a lock timeout", refusal("55P03"), "another transaction holds a lock on a table or its rows: refused", true],
  ["a cancelled statement", refusal("57014"), `${cancelled}: refused`, true],
  ["a missing privilege", refusal("42501"), "refused", false],
  ["an older schema", new StoreOpenError("run it"), "run it", false],
  ["a host that is unreachable on all addresses", addresses, "connect ECONNREFUSED ::1:1; connect ETIMEDOUT", true],
  ["a value that is not an error", "odd", "odd", true],
])("problemOf reports %s as a temporary problem", (_name, fault, text, mayBeBrief) => {
  expect(problemOf(fault)).toEqual({ text, mayBeBrief, isTemporary: true });
});
