import { expect, test, vi } from "vitest";
import { citusPlacement } from "../../../src/stores/citus/citus-placement.ts";
import { Shards } from "../../../src/stores/citus/shards.ts";
import { readServerUrl } from "../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../src/stores/postgres/server/session.ts";
import { schemaOf } from "../../support/plants/schema-of.ts";

/** Resolves like the statement that checks an available worker. */
const available: Session["query"] = () => Promise.resolve([]);

/** Rejects like the statement that checks a worker with a full disk. */
const full: Session["query"] = () =>
  Promise.reject(Object.assign(new Error("no space"), { code: "53100", severity: "ERROR" }));

/** Rejects like the statement that checks a worker where the role lacks a privilege. */
const denied: Session["query"] = () =>
  Promise.reject(Object.assign(new Error("permission denied"), { code: "42501", severity: "ERROR" }));

test.each([
  {
    name: "the worker check passes if both workers are available",
    workers: [available, available],
    want: "healthy",
  },
  {
    name: "the worker check passes if only the first worker is unavailable",
    workers: [full, available],
    want: "healthy",
  },
  {
    name: "the worker check passes if only the second worker is unavailable",
    workers: [available, full],
    want: "healthy",
  },
  {
    name: "the worker check fails if both workers are unavailable",
    workers: [full, full],
    want: "Error: no space",
  },
  {
    name: "the worker check fails if one worker refuses deletions",
    workers: [available, denied],
    want: "Error: permission denied",
  },
])("$name", async ({ workers, want }) => {
  const session = new Session(readServerUrl("postgres://tester@127.0.0.1/plants"));
  const query = vi.spyOn(session, "query");
  for (const checkWorker of workers) query.mockImplementationOnce(checkWorker);
  const placement = citusPlacement(schemaOf(session), new Shards([0, 2 ** 31 - 1], [0, 1]));
  expect(await placement.checkWorkers(session).then(() => "healthy", String)).toBe(want);
  expect(query).toHaveBeenCalledTimes(2);
});
