import type { HarmlessFaults } from "./harmless-fault.ts";

/** Harmless faults in the plant stores. */
export const harmlessInPlants: readonly HarmlessFaults[] = [
  {
    file: "src/plants/sqlite/database.ts",
    line: "const walKeptBytes = 16 * 2 ** 20;",
    fault: "16 * 2 ** 20 → 16 /",
    why: "to keep less of the log costs time alone",
  },
  {
    file: "src/plants/store-health.ts",
    line: "else clearInterval(this.#watch);",
    fault: "clearInterval(this.#watch); → ;",
    why: "a watch that goes on sees each time that a problem is known, and looks no further",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "return receiveMessageOnPort(port)?.message;",
    fault: "return",
    why: "who sleeps asks again at once, and finds the question then",
  },
  {
    file: "src/plants/storable-text.ts",
    line: 'return short.includes("\\0")',
    fault: 'short.includes("\\0") → true',
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/plants/delete-queue.ts",
    line: "const answeredAtOnce = 64;",
    why: "a number between two bad ones: 65 would do",
  },
  {
    file: "src/plants/delete-queue.ts",
    line: "if (i > 0 && i % answeredAtOnce === 0) await nextTurn();",
    fault: "0 → 1",
    why: "the turn comes one caller later",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "export const lockGapMs",
    why: "a shorter gap lets a busy neighbour wait longer, and nothing else",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "const awakeMs = availableParallelism()",
    why: "to sleep at once, or never, costs time alone",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "let nextDropMs = performance.now()",
    fault: "performance.now() + dropOldDeletions(Date.now()) → performance.now() -",
    why: "old records are looked for once more at once",
  },
  {
    file: "src/plants/sqlite/store.ts",
    line: "if (result.outcomes.includes(true))",
    fault: "result.outcomes.includes(true) → false",
    why: "to prove by a write what a deletion has proved costs time alone",
  },
  {
    file: "src/plants/postgres/store.ts",
    line: "if (!hasWorked) await checkWrite(session);",
    fault: "!hasWorked → true",
    why: "to prove by a write what a deletion has proved costs time alone",
  },
  {
    file: "src/plants/postgres/attempt-batch.ts",
    line: "const first = pending.filter(",
    fault: "there.has(one.id) && batch.firstOf.get(one.id) === one → there.has(one.id) ||",
    why: "a plant that is not there, or is named again, is left out by the statement, too",
  },
  {
    file: "src/plants/sqlite/file-identity.ts",
    line: 'return done?.["busy"] === 0n',
    fault: 'done?.["busy"] === 0n && done["log"] === done["checkpointed"] → done?.["busy"] === 0n ||',
    why: "SQLite says that it is busy wherever it has not copied all of the log",
  },
  {
    file: "src/plants/sqlite/import.ts",
    line: "mark.run();",
    why: "to copy the records once more costs time alone",
  },
  {
    file: "src/plants/sqlite/backup.ts",
    line: "closeSync(descriptor);",
    why: "the command that makes a backup ends, and closes what is open",
  },
  {
    file: "src/plants/sqlite/retention.ts",
    line: "let begunMs = 0;",
    why: "it is set before it is read",
  },
  {
    file: "src/plants/sqlite/migrate.ts",
    line: "if (versionOf(db) === migrations.length) return;",
    fault: "versionOf(db) === migrations.length \u2192 false",
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "if (now - triedAt < lockPollMs) Atomics.wait(",
    fault: "now - triedAt \u2192 ",
    why: "to ask again without a pause costs time alone",
  },
  {
    file: "src/plants/sqlite/import.ts",
    line: "follow();",
    why: "the records are copied under the lock then, which takes longer and finds the same",
  },
  {
    file: "src/plants/sqlite/file-identity.ts",
    line: "return false;",
    why: "undefined is as false",
  },
  {
    file: "src/plants/store-health.ts",
    line: "if (problem.passing) this.#tryLater();",
    fault: "problem.passing \u2192 true",
    why: "a store that no try brings back is tried once more",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "if (nowMs - this.#refusedAtMs > calmMs)",
    fault: "nowMs - this.#refusedAtMs > calmMs \u2192 nowMs - this.#refusedAtMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return durationMs > this.#batchMsMax",
    fault: "durationMs > this.#batchMsMax \u2192 durationMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return durationMs > this.#batchMsMax",
    fault: "durationMs > size * slowDeletionMs \u2192 durationMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/sqlite/database.ts",
    line: "if (!existsSync(`${path}-wal`)",
    fault: '"1" → ',
    why: "SQLite reads the number that a value begins with",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "let cameAlone = false;",
    why: "to sleep at once, or a little later, costs time alone",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: 'cameAlone = question?.kind === "delete"',
    fault: "question.batch.ids.length === 1",
    why: "to sleep at once, or a little later, costs time alone",
  },
  {
    file: "src/plants/plant-service.ts",
    line: "return {};",
    why: "of a message without fields, nothing makes the same answer",
  },
  {
    file: "src/plants/postgres/run-batch.ts",
    line: "if (fate === undefined && batch.keyed.length > 0)",
    fault: "batch.keyed.length > 0 → batch.keyed.length >= 0",
    why: "to ask about no keys costs time alone",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "if (now - triedAt < lockPollMs) Atomics.wait(",
    fault: "now - triedAt < lockPollMs → false",
    why: "to ask again without a pause costs time alone",
  },
  {
    file: "src/plants/sqlite/import.ts",
    line: "const lockTimeoutMs = 60_000;",
    why: "nobody waits for an import, and twice as long would do",
  },
  {
    file: "src/plants/postgres/check-write.ts",
    line: "if (!session.shards.areThere) return await probe(session, 0n, lockTableSql);",
    fault: "0n → 1n",
    why: "the record is rolled back, whichever plant it names",
  },
  {
    file: "src/plants/postgres/check-write.ts",
    line: "faults.push(fault);",
    fault: "push → unshift",
    why: "where no worker can be used, the fault of any of them is named",
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
    why: "no hash is larger than the largest of the last shard",
  },
  {
    file: "src/plants/postgres/migrate.ts",
    line: "if (step === undefined) return false;",
    fault: "return false; → return undefined",
    why: "undefined is as false",
  },
  {
    file: "src/plants/store-health.ts",
    line: "return performance.now() - this.#failingSinceMs <",
    fault: "0 → 1",
    why: "a store that gives no time has no problem that may be brief",
  },
  {
    file: "src/plants/store-health.ts",
    line: "return performance.now() - this.#failingSinceMs <",
    fault:
      "performance.now() - this.#failingSinceMs < (this.#options.briefMsMax ?? 0) → performance.now() - this.#failingSinceMs <=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/postgres/migrate.ts",
    line: "if (tries % triesPerLine === 0) onWaiting?.(",
    fault: "0 → 1",
    why: "an operator is told for the first time a second later",
  },
];
