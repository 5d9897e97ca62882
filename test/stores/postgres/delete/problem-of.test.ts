import { expect, test } from "vitest";
import { problemOf } from "../../../../src/stores/postgres/delete/fault-table.ts";
import { StoreOpenError } from "../../../../src/stores/contract/store-options.ts";

/** Returns a server error. */
const refusal = (sqlState: string): Error => Object.assign(new Error("refused"), { code: sqlState, severity: "ERROR" });

// A host name with several addresses fails with one error per address, and no common message.
const addresses = new AggregateError([new Error("connect ECONNREFUSED ::1:1"), new Error("connect ETIMEDOUT")]);

test.each([
  ["a lost connection", new Error("lost"), "lost", true],
  ["a starting server", refusal("57P03"), "refused", true],
  ["a lock timeout", refusal("55P03"), "another transaction holds a lock on a table or its rows: refused", true],
  [
    "a cancelled statement",
    refusal("57014"),
    "a statement was cancelled, probably because it took too long: refused",
    true,
  ],
  ["a missing privilege", refusal("42501"), "refused", false],
  ["an older schema", new StoreOpenError("run it"), "run it", false],
  ["a host that is unreachable on all addresses", addresses, "connect ECONNREFUSED ::1:1; connect ETIMEDOUT", true],
  ["a value that is not an error", "odd", "odd", true],
])("problemOf reports %s as a temporary problem", (_name, fault, text, mayBeBrief) => {
  expect(problemOf(fault)).toEqual({ text, mayBeBrief, isTemporary: true });
});
