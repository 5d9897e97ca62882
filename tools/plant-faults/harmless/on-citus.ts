import type { HarmlessFaults } from "./harmless-fault.ts";

// The beginning of a line, and the beginnings of those faults in it that the tests of PostgreSQL alone cannot notice;
// without any, all its faults.
const lines: readonly (readonly [line: string, ...faults: string[]])[] = [
  ["return this.#hashMax.length > 0;", "return", "0 → 1"],
  ["return this.#worker[this.#hashMax.findIndex(", "return", "this.#worker["],
  ["const shards = (await isCitus(session))", "await isCitus(session) → false"],
  ["if (shards.length === 0)", "shards.length === 0 → false", "shards.length === 0 → shards", "0 → 1", "await"],
  ["if (shards.some(([, , canDelete])", 'shards.some(([, , canDelete]) => canDelete === "f") → false'],
  ["if (shards.some(([, , canDelete])", "canDelete", '"f"', "throw"],
  ["if (shards.some(([, , , tellsAll])", 'shards.some(([, , , tellsAll]) => tellsAll === "f") → false'],
  ["if (shards.some(([, , , tellsAll])", "tellsAll", '"f"', "throw"],
  ["if (isDeepStrictEqual("],
  ["this.#hashMax = hashMax;"],
  ["this.#worker = worker;"],
  ["this.#oneOfEach = this.#findOneOfEach();"],
  ["for (let id = 0n; wanted.size > 0", "wanted.size > 0 && id < searchedIdsMax →", "0 → 1"],
  ["if (wanted.delete(this.workerOf(id)))", "wanted", "found"],
  ["return found;"],
  ["SELECT shardmaxvalue, dense_rank()"],
  ['"set client_min_messages and'],
  ['"being set by the connection;'],
  ['"a schema that Citus keeps'],
  ['"or bring it back by'],
  ["if (known?.[0] === null) return;", "known?.[0] === null → true"],
  ["if (found.length > 0) throw"],
  ['return (await session.query("SELECT FROM pg_extension', "return", "0 → 1"],
  ["return call.idempotencyKey === undefined ?"],
  ["if (!(await isCitus(session))) return;", "!(await isCitus(session)) → true"],
  ['await session.begin("BEGIN ISOLATION LEVEL READ COMMITTED'],
  ["for (const sql of await missingSql(session))"],
  ["await session.commit();"],
  ['if (state === "otherwise")'],
  ["const [[state] = []] = await session.query(stateSql", "[functionBody] → []"],
  ['if (state === "of another release")'],
  ['if (state === "by hand")'],
  ['return state === "whole" ?'],
  ["const stateSql = `"],
  ["const keysSql = ["],
  ["const functionBody = `"],
];

// Not harmless, but in code that only runs on Citus: `npm run test:citus`, which takes too long here, fails with each.
const noticedOnCitus: readonly HarmlessFaults[] = lines.flatMap(([line, ...faults]) => {
  const ofLine = { file: "src/plants/postgres/citus.ts", line, why: "`npm run test:citus` notices" };
  return faults.length === 0 ? [ofLine] : faults.map((fault) => ({ ...ofLine, fault }));
});

/** Faults in the code for Citus: harmless ones, and those that only `npm run test:citus` notices. */
export const harmlessOnCitus: readonly HarmlessFaults[] = [
  ...noticedOnCitus,
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
