import { expect, test } from "vitest";
import { problemOf } from "../../../../src/stores/postgres/delete/fault-table.ts";
import { StoreOpenError } from "../../../../src/stores/contract/store-options.ts";

/** Returns a server error. */
function refusal(sqlState: string): Error {
  return Object.assign(new Error("refused"), { code: sqlState, severity: "ERROR" });
}

// A host name with several addresses fails with one error per address, and no common message.
const addresses = new AggregateError([new Error("connect ECONNREFUSED ::1:1"), new Error("connect ETIMEDOUT")]);

test.each([
  { name: "a lost connection", fault: new Error("lost"), text: "lost", mayBeBrief: true },
  { name: "a starting server", fault: refusal("57P03"), text: "refused", mayBeBrief: true },
  {
    name: "a lock timeout",
    fault: refusal("55P03"),
    text: "another transaction holds a lock on a table or its rows: refused",
    mayBeBrief: true,
  },
  {
    name: "a cancelled statement",
    fault: refusal("57014"),
    text: "a statement was cancelled, probably because it took too long: refused",
    mayBeBrief: true,
  },
  { name: "a missing privilege", fault: refusal("42501"), text: "refused", mayBeBrief: false },
  { name: "an older schema", fault: new StoreOpenError("run it"), text: "run it", mayBeBrief: false },
  {
    name: "a host that is unreachable on all addresses",
    fault: addresses,
    text: "connect ECONNREFUSED ::1:1; connect ETIMEDOUT",
    mayBeBrief: true,
  },
  { name: "a value that is not an error", fault: "odd", text: "odd", mayBeBrief: true },
])("problemOf reports $name as a temporary problem", ({ fault, text, mayBeBrief }) => {
  expect(problemOf(fault)).toEqual({ text, mayBeBrief, isTemporary: true });
});
