import type { HarmlessFaults } from "./harmless-fault.ts";

/** The beginning of a line, and the beginnings of those faults in it that the tests of PostgreSQL alone cannot notice. */
type Line = readonly [line: string, ...faults: readonly [string, ...string[]]];

const inCitus: readonly Line[] = [
  ["return this.#hashMax.length > 0;", "return", "0 → 1"],
  ["return this.#worker[this.#hashMax.findIndex(", "return", "this.#worker["],
  ["const shards = (await isCitus(session))", "await isCitus(session) → false"],
  ["if (shards.length === 0)", "shards.length === 0 → false", "shards.length === 0 → shards", "0 → 1", "await"],
  ["if (shards.some(([, , canDelete])", 'shards.some(([, , canDelete]) => canDelete === "f") → false'],
  ["if (shards.some(([, , canDelete])", "canDelete", '"f"', "throw"],
  ["if (shards.some(([, , , tellsAll])", 'shards.some(([, , , tellsAll]) => tellsAll === "f") → false'],
  ["if (shards.some(([, , , tellsAll])", "tellsAll", '"f"', "throw"],
  [
    "if (isDeepStrictEqual(",
    "isDeepStrictEqual(",
    "[hashMax, worker] → []",
    "[this.#hashMax, this.#worker] → []",
    "return",
  ],
  ["this.#hashMax = hashMax;", "this.#hashMax = hashMax; → ;"],
  ["this.#worker = worker;", "this.#worker = worker; → ;"],
  ["this.#oneOfEach = this.#findOneOfEach();", "this.#oneOfEach = this.#findOneOfEach(); → ;"],
  ["for (let id = 0n; wanted.size > 0", "wanted.size > 0 && id < searchedIdsMax →", "0 → 1"],
  ["if (wanted.delete(this.workerOf(id)))", "wanted", "found"],
  ["return found;", "return found; → return undefined"],
  ["SELECT shardmaxvalue, dense_rank()", "}') IS NOT NULL, current_setting('client_min_messages')"],
  ['"set client_min_messages and', '"set client_min_messages and'],
  ['"being set by the connection;', '"being set by the connection;'],
  ['"a schema that Citus keeps', '"a schema that Citus keeps'],
  ['"or bring it back by', '"or bring it back by'],
  ["if (known?.[0] === null) return;", "known?.[0] === null → true"],
  ["if (found.length > 0) throw", "found.length > 0", "0 → 1", "throw"],
  ['return (await session.query("SELECT FROM pg_extension', "return", "0 → 1"],
  ["return call.idempotencyKey === undefined ?", "return", "call.idempotencyKey === undefined", "idempotencyKey: `"],
  ["if (!(await isCitus(session))) return;", "!(await isCitus(session)) → true"],
  ['await session.begin("BEGIN ISOLATION LEVEL READ COMMITTED', "await session.begin(", '"BEGIN ISOLATION LEVEL'],
  ["for (const sql of await missingSql(session))", "await missingSql(session)", "await session.run(sql)"],
  ["await session.commit();", "await session.commit()"],
  ['if (state === "otherwise")', "state", '"otherwise"', "throw"],
  ["const [[state] = []] = await session.query(stateSql", "[functionBody] → []"],
  ['if (state === "of another release")', "state", '"of another release"', "return", "[sequentialSql, functionSql]"],
  ['if (state === "by hand")', "state", '"by hand"', "return", "[sequentialSql, ...keysSql, spreadFunctionSql]"],
  ['return state === "whole" ?', "return", "state", '"whole"', "[sequentialSql, primaryKeySql, ...keysSql"],
  ["const stateSql = `", "` SELECT CASE WHEN plants.logicalrelid IS NULL"],
  ["const keysSql = [", '[ "DROP INDEX IF EXISTS deletions_by_plant"'],
  ["const functionBody = `", "` DECLARE part bigint[]; free bigint[];"],
  ["IF ${mayDropRecords} OR ${elsewhere(", "} THEN SELECT count(DISTINCT plant_id)"],
  ["ELSIF ${elsewhere(", "} THEN undone := gen_random_uuid();"],
  ["const endWaitsSql = `", "` SELECT DISTINCT pid FROM pg_stat_activity"],
  ["const there = await session.query(endWaitsSql,", "[`{${processes.join()}}`] → []"],
  ["return there.map(([process]) => Number(process));", "return"],
];

const inStore: readonly Line[] = [
  ["#isClosed = false;", "false → true"],
  ["this.#isClosed = true;", "this.#isClosed = true; → ;", "true → false"],
  ["const inUse = this.#workerQueues.size > 0 ?", "this.#workerQueues.size > 0 → false", "[...this"],
  ["if (!this.#shards.areThere) return this.#firstQueue", "!this.#shards.areThere → true"],
  ["return this.#queueOf(id).delete(id, toCallOnCitus(call, id));", "return"],
  ["await shards.learn(session);", "await shards.learn(session); → ;"],
  ["await this.#shards.learn(session);", "await this.#shards.learn(session); → ;"],
  ["workerOf: (id) => this.#shards.workerOf(id),", "workerOf"],
  ["await checkWorkers(session);", "await checkWorkers(session); → ;"],
  ["if (this.#shards.areThere) this.#away.worked(", "this.#shards.areThere → false", "this.#away.worked("],
  [
    "const mayBeOneWorker = this.#shards.areThere &&",
    'fault.server === "away" || fault.server === "busy" → fault.server === "away" &&',
    'fault.server === "away" → fault.server !==',
    'fault.server === "busy" →',
    '"away"',
    '"busy"',
  ],
  ["if (mayBeOneWorker) void this.#suspectWorker(", "mayBeOneWorker → false", "void this.#suspectWorker("],
  ["if (isStoreWell) this.#away.failed(", "isStoreWell", "this.#away.failed("],
  ["return first === undefined ? 0 :", "return", "first === undefined → true", "first === undefined → first !=="],
  ["if (queue !== undefined) return queue;", "queue !== undefined", "return queue;"],
  ["if (this.#isClosed) return this.#firstQueue;", "this.#isClosed", "return this.#firstQueue;"],
  ["this.#workerQueues.set(worker, created);", "this.#workerQueues.set("],
  ["return created;", "return created;"],
];

const inCheckWrite: readonly Line[] = [
  ["await probe(session, probeSql(id, recordOnWorkerSql(", "await probe("],
  ["await checkWorkerOf(session, id);", "await checkWorkerOf(session, id); → ;"],
  ["await checkEachWorker(session, (id) =>", "await checkEachWorker(session, (id) => checkWorkerOf(session, id)); → ;"],
  ["await check(id);", "await check(id); → ;"],
  ["session.discard();", "session.discard();"],
  ['if (verdictOn(fault) === "give-up") throw fault;', "verdictOn(", '"give-up"', "throw"],
  ["faults.push(fault);", "faults.push(fault); → ;"],
  [
    "if (faults.length > 0 && faults.length",
    "faults.length > 0 && faults.length === plants.length → false",
    "faults.length === plants.length → faults.length !==",
    "0 → 1",
    "throw faults[0]; → ;",
  ],
  ["if (!session.shards.areThere) return await probe(", "!session.shards.areThere → true"],
  [
    "await checkEachWorker(session, async (id) => {",
    "await checkEachWorker(session, async (id) => { await probe(session, probeSql(id… → ;",
  ],
];

const inSession: readonly Line[] = [
  ["if (this.#stuck.length > 0) await", "this.#stuck.length > 0 → false", "0 → 1", "await this.#endStuck(); → ;"],
  ["this.#stuck = await endWaitsOnWorkers(", "this.#stuck = await endWaitsOnWorkers(this, this.#stuck); → ;"],
  ["if (fault instanceof InDoubt) return;", "fault instanceof InDoubt", "return; → ;"],
  ["this.#stuck = [];", "this.#stuck = []; → ;"],
  ["if (sqlStateOf(fault) === undefined) this.discard();", "sqlStateOf(fault) === undefined", "this.discard(); → ;"],
  [
    "if (this.shards.areThere && processID",
    "this.shards.areThere && processID !== null → false",
    "processID !== null →",
    "this.#stuck = [...this.#stuck, processID].slice(-stuckMax); → ;",
    "[...this.#stuck, processID] → []",
    "-stuckMax → stuckMax",
  ],
];

const inDeleteBatch: readonly Line[] = [
  ["if (session.shards.areThere) return idsIn(", "session.shards.areThere → false", "return", "false → true", "0 → 1"],
  ["if (session.shards.areThere) return toFates(", "session.shards.areThere → false", "return", "true → false"],
  ["const [row] = await session.query(deleteOnWorkerSql,", "[one, ids, subjects"],
  ["await session.query(deleteOnWorkerSql, [id,", "await session.query(deleteOnWorkerSql", '[id, "{}"'],
  ['const kinds: readonly PlantFate[] = ["deleted"', '["deleted"'],
  ["for (const [i, fate] of kinds.entries())", "fates.set("],
  ["const rows = session.shards.areThere", "session.shards.areThere → false"],
  ["? await session.query(lookForKeysOfPlantsSql,", "[keys, toArray("],
  ["if (session.shards.areThere) return toIds(", "session.shards.areThere → false", "return", "[toArray(ids)] → []"],
];

const inMigrate: readonly Line[] = [
  ["await refuseDistributedSchema(session);", "await refuseDistributedSchema(session); → ;"],
  [
    "await repeatWhileRefused(session, () => distribute(session));",
    "await repeatWhileRefused(session, () => distribute(session)); → ;",
  ],
];

const inAttempt: readonly Line[] = [
  [
    'return shards.areThere && sqlStateOf(fault) === "57014";',
    "return",
    "shards.areThere &&",
    "sqlStateOf(",
    '"57014"',
  ],
];

const inRetention: readonly Line[] = [
  ["if (session.shards.areThere) return await dropOnWorkers(", "session.shards.areThere → false", "return"],
  ["if (old.length === 0) return { count: 0,", "old.length === 0 → true", "0 → 1", "return", "false → true"],
  ["const [ids, seqs] = [0, 1].map(", "[0, 1] → []", "0 → 1", "1 → 2"],
  ['"DELETE FROM deletions WHERE plant_id = ANY', '"DELETE FROM deletions WHERE plant_id = ANY'],
  ["[ids, seqs],", "[ids, seqs] → []"],
  ["return { count: dropped.length, isMore: old.length", "return", "old.length === sliceMax → old.length !=="],
];

// Not harmless, but in code that only runs on Citus: `npm run test:citus`, which takes too long here, fails with each.
function noticedOnCitus(file: string, lines: readonly Line[]): readonly HarmlessFaults[] {
  return lines.flatMap(([line, ...faults]) =>
    faults.map((fault) => ({ file, line, fault, why: "`npm run test:citus` notices" })),
  );
}

/** Faults in the code for Citus: harmless ones, and those that only `npm run test:citus` notices. */
export const harmlessOnCitus: readonly HarmlessFaults[] = [
  ...noticedOnCitus("src/plants/postgres/citus.ts", inCitus),
  ...noticedOnCitus("src/plants/postgres/store.ts", inStore),
  ...noticedOnCitus("src/plants/postgres/check-write.ts", inCheckWrite),
  ...noticedOnCitus("src/plants/postgres/attempt-batch.ts", inAttempt),
  ...noticedOnCitus("src/plants/postgres/session.ts", inSession),
  ...noticedOnCitus("src/plants/postgres/delete-batch.ts", inDeleteBatch),
  ...noticedOnCitus("src/plants/postgres/migrate.ts", inMigrate),
  {
    file: "src/plants/postgres/session.ts",
    line: "const stuckMax = 100;",
    why: "a number between two bad ones: twice as many would do",
  },
  {
    file: "src/plants/postgres/store.ts",
    line: "const inFlightMaxOfWorker = 1;",
    why: "two batches at a time for a worker take longer, and nothing else",
  },
  {
    file: "src/plants/postgres/store.ts",
    line: "const inUse = this.#workerQueues.size > 0 ?",
    fault: "0 → 1",
    why: "the queue of one worker has as much room as the first one",
  },
  ...noticedOnCitus("src/plants/postgres/retention.ts", inRetention),
  {
    file: "src/plants/postgres/retention.ts",
    line: "`SELECT plant_id, seq FROM deletions WHERE deleted_at < now()",
    fault: "`SELECT plant_id, seq FROM deletions WHERE",
    why: "a microsecond",
  },
  {
    file: "src/plants/postgres/retention.ts",
    line: "if (old.length === 0) return { count: 0,",
    fault: "old.length === 0 → false",
    why: "to drop no records costs time alone",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "return this.#worker[this.#hashMax.findIndex(",
    fault: "hash <= max → hash <",
    why: "a deletion that goes to another worker first costs time alone",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "return this.#worker[this.#hashMax.findIndex(",
    fault: "0 → 1",
    why: "no hash is larger than the largest of the last shard, and without Citus all is of one worker, whatever its number",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "const mayDropRecords = `",
    fault:
      "`EXISTS ( SELECT FROM pg_trigger WHERE tgtype & 7 = 7 AND NOT tgisinternal AND … → `EXISTS ( SELECT FROM pg_trigger WHERE tgtype & 7 = 7 OR NOT",
    why: "to count records where no trigger drops any costs time alone",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "const mayDropRecords = `",
    fault:
      "`EXISTS ( SELECT FROM pg_trigger WHERE tgtype & 7 = 7 AND NOT tgisinternal AND … → `EXISTS ( SELECT FROM pg_trigger WHERE tgtype & 7 = 7 AND NOT tgisinternal OR",
    why: "to count records where no trigger drops any costs time alone",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "const searchedIdsMax = 100_000;",
    why: "a number between two bad ones: twice as many would do",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "if (shards.length === 0) await refuseDistributedSchema(session);",
    fault: "shards.length === 0 → true",
    why: "to look for what cannot be costs time alone",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "for (let id = 0n; wanted.size > 0",
    fault: "0n → 1n",
    why: "any plant of a worker will do",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "for (let id = 0n; wanted.size > 0",
    fault: "wanted.size > 0 → wanted.size >= 0",
    why: "to search on when all are found costs time alone",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "for (let id = 0n; wanted.size > 0",
    fault: "id < searchedIdsMax → id <=",
    why: "one id more is searched",
  },
  {
    file: "src/plants/postgres/citus.ts",
    line: "if (wanted.delete(this.workerOf(id))) found.push(id);",
    fault: "push → unshift",
    why: "the workers are checked in another order",
  },
];
