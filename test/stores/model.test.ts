import { expect, test } from "vitest";
import { waitLimitMs } from "@protoport/testing/process";
import { checkStore } from "../support/model/check-store.ts";
import { createSqlite } from "../support/model/databases.ts";
import { startInThread } from "../support/model/start-thread.ts";

// The suite `model` runs more commands, also on PostgreSQL, and kills processes.
const run = { create: createSqlite, sequences: 2, limitMs: waitLimitMs };

test("an SQLite store behaves like the model despite terminated threads", async () =>
  expect(await checkStore({ ...run, startStore: startInThread() })).toBeGreaterThan(0));
