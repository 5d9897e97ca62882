import { describe, type ExpectStatic, test } from "vitest";
import { closing, waitLimitMs } from "@protoport/testing/process";
import { batchTimeoutMs } from "../../../../../src/stores/contract/backend.ts";
import type { Requested } from "../../../../../src/stores/contract/backend.ts";
import type { BatchFailure } from "../../../../../src/stores/postgres/delete/batch-run.ts";
import { readServerUrl } from "../../../../../src/stores/postgres/server/server-url.ts";
import { Session } from "../../../../../src/stores/postgres/server/session.ts";
// oxfmt-ignore
import { definedSqlStates, errorMessage, listenersOf, plantsOf, type PostgresProxy, readyForQuery, runBatchWith, runSql,
  startPostgresOfFile, startPostgresProxy } from "../../../../support/plants/index.ts";

// Each PostgreSQL SQLSTATE is the error for the first two statements that delete plant 1, in a batch that also deletes
// plant 2. Batches that may still succeed are repeated. A batch that is split has then failed for plant 1 alone.

const server = await startPostgresOfFile();
/** SQLSTATEs in classes that PostgreSQL does not use. */
const ownSqlStates: readonly string[] = ["PLANT", "45000"];

const kept = "the database does not allow deleting plant 1";
const unavailable = "the plant store cannot process the request at the moment";
/** The SQLSTATEs with which the server refuses a plant, and never the statement itself. */
const refusesPlant = /^(?:22|23|P0)/;
/** The SQLSTATEs for an error in the statement itself. In a trigger, the error is in the trigger's function. */
const refusesStatement = /^(?:0A|28|3D|3F|42)/;
/** The SQLSTATEs after which the same batch may succeed, although a trigger has raised them. */
const passes = /^(?:25P03|25P04|40001|40003|40P01|55P03|57014|57P01|57P02|57P05)/;
/** The SQLSTATEs of timeouts, after which a plant alone is tried again later. */
const locks = /^(?:55P03|57014)$/;
/** The SQLSTATEs that the server sends only if it has not committed. */
const precedesCommit = /^(?:0A|22|23|25006|27|28|3D|3F|40001|40P01|42|53|54|55P03|57014|57P03|P0)/;

/** Returns SQL for a trigger that fails for plant 1. A statement with 25006 or 42501 is repeated immediately. */
const failingTriggerSql = (trigger: string): string => `
  CREATE TABLE faults (sql_state text);
  CREATE SEQUENCE attempts;
  CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE state text := (SELECT sql_state FROM faults);
    BEGIN
      IF nextval('attempts') <= (CASE WHEN state IN ('25006', '42501') THEN 4 ELSE 2 END) THEN RAISE 'no' USING ERRCODE = state; END IF;
      RETURN OLD;
    END $$;
  CREATE ${trigger} FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION fail()`;

interface Outcome {
  /** The callers' results, or the verdict on the error if the batch has failed. */
  readonly results: unknown;
  readonly rest: unknown;
}

/** Deletes plants 1 and 2 in one batch. */
async function deleteTwo(session: Session, url: string): Promise<Outcome> {
  const restore = "DELETE FROM plants; DELETE FROM deletions; INSERT INTO plants VALUES (1), (2)";
  await runSql(url, `SET session_replication_role = replica; ${restore}`);
  const { deletions, results } = listenersOf(1n, 2n);
  session.deadlineMs = performance.now() + batchTimeoutMs;
  const defer = ({ id }: Requested): void => void (results[Number(id) - 1] = "locked");
  const running = runBatchWith(session, deletions, { defer });
  const failure = await running.then(() => undefined).catch(({ verdict }: BatchFailure) => verdict);
  const rest = await plantsOf(url);
  return { results: failure ?? results, rest };
}

const outcomeOf = (first: unknown): Outcome => ({ results: [first, true], rest: first === true ? [] : ["1"] });

async function checkTrigger(expect: ExpectStatic, trigger: string): Promise<void> {
  const url = await server.createPlants();
  await runSql(url, failingTriggerSql(trigger));
  await using session = closing(new Session(readServerUrl(url)));
  for (const sqlState of [...definedSqlStates, ...ownSqlStates]) {
    const setFault = `DELETE FROM faults; INSERT INTO faults VALUES ('${sqlState}')`;
    await runSql(url, `${setFault}; ALTER SEQUENCE attempts RESTART`);
    const isRefusal = refusesPlant.test(sqlState) || ownSqlStates.includes(sqlState);
    const isLocked = locks.test(sqlState);
    const first = isRefusal ? kept : isLocked ? "locked" : passes.test(sqlState) ? true : unavailable;
    expect({ sqlState, ...(await deleteTwo(session, url)) }).toEqual({ sqlState, ...outcomeOf(first) });
  }
}

// Each test runs a thousand transactions, in 5 s or in a minute on a busy machine.
describe.concurrent("each SQLSTATE of PostgreSQL", { timeout: 10 * waitLimitMs }, () => {
  test("raised by a trigger has the outcome of its class", ({ expect }) =>
    checkTrigger(expect, "TRIGGER fail BEFORE DELETE ON plants"));

  test("raised at the commit has the outcome of its class", ({ expect }) =>
    checkTrigger(expect, "CONSTRAINT TRIGGER fail AFTER DELETE ON plants DEFERRABLE INITIALLY DEFERRED"));

  test("without an error context has the outcome of its class", async ({ expect }) => {
    const url = await server.createPlants();
    const faults = { sqlState: "", left: 0 };
    await using proxy = await startFailingProxy(faults, "before-commit");
    await using session = closing(new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder))));
    for (const sqlState of definedSqlStates) {
      Object.assign(faults, { sqlState, left: 2 });
      const expected = refusesStatement.test(sqlState)
        ? { results: "fail", rest: ["1", "2"] }
        : outcomeOf(refusesPlant.test(sqlState) ? kept : /^(?:27|54)/.test(sqlState) ? unavailable : true);
      expect({ sqlState, ...(await deleteTwo(session, url)) }).toEqual({ sqlState, ...expected });
    }
  });

  test("sent after the commit does not change the deletion's outcome", async ({ expect }) => {
    const url = await server.createPlants();
    const faults = { sqlState: "", left: 0 };
    await using proxy = await startFailingProxy(faults, "after-commit");
    await using session = closing(new Session(readServerUrl(url.replace(server.socketFolder, proxy.socketFolder))));
    for (const sqlState of definedSqlStates.filter((one) => !precedesCommit.test(one))) {
      Object.assign(faults, { sqlState, left: 2 });
      expect({ sqlState, ...(await deleteTwo(session, url)) }).toEqual({ sqlState, ...outcomeOf(true) });
      const records = await runSql(url, "SELECT plant_id FROM deletions ORDER BY 1");
      expect(records).toEqual([{ plant_id: "1" }, { plant_id: "2" }]);
    }
  });
});

/** Starts a proxy that responds to the next deletions of plant 1 with an error without a context. */
function startFailingProxy(
  faults: { readonly sqlState: string; left: number },
  moment: "before-commit" | "after-commit",
): Promise<PostgresProxy> {
  return startPostgresProxy(server.socketFolder, (client, serverSocket) => {
    let isReplaced = false;
    const refuse = (): void => {
      client.write(Buffer.concat([errorMessage(`SERROR\0C${faults.sqlState}\0Mrefused\0\0`), readyForQuery]));
    };
    client.on("data", (data) => {
      const isFaulty = faults.left > 0 && data.includes("gone AS (") && /\{1[,}]/.test(data.toString("latin1"));
      if (isFaulty) faults.left--;
      if (isFaulty && moment === "before-commit") return refuse();
      isReplaced ||= isFaulty;
      serverSocket.write(data);
    });
    serverSocket.on("data", (data) => {
      if (!isReplaced) return void client.write(data);
      // The response ends with ReadyForQuery, whose last byte is the transaction's state.
      if (!data.toString("latin1").slice(0, -1).endsWith("Z\0\0\0\x05")) return;
      isReplaced = false;
      refuse();
    });
  });
}
