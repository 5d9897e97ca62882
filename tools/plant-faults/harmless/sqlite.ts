import type { HarmlessFaults } from "./harmless-fault.ts";

/** Harmless faults in the store on SQLite. */
export const harmlessInSqlite: readonly HarmlessFaults[] = [
  {
    file: "src/plants/sqlite/database.ts",
    line: "const walKeptBytes = 16 * 2 ** 20;",
    fault: "16 * 2 ** 20 → 16 /",
    why: "to keep less of the log costs time alone",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "return receiveMessageOnPort(port)?.message;",
    fault: "return",
    why: "who sleeps asks again at once, and finds the question then",
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
    why: "to sleep at once, or a little later, costs time alone",
  },
  {
    file: "src/plants/sqlite/import.ts",
    line: "const lockTimeoutMs = 60_000;",
    why: "nobody waits for an import, and twice as long would do",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "if (now - triedAt < lockPollMs) Atomics.wait(",
    fault: "now - triedAt < lockPollMs → true",
    why: "to sleep again after SQLite has slept costs two milliseconds",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "if (now - triedAt < lockPollMs) Atomics.wait(",
    fault: "now - triedAt < lockPollMs → now - triedAt <=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "if (!isLocked(fault) || now > until) throw fault;",
    fault: "now > until → now >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/sqlite/import.ts",
    line: "const copy = db.prepare(`",
    why: "the last record is copied again into a table that holds it already",
  },
  {
    file: "src/plants/sqlite/plant-database.ts",
    line: "yield* inChunks(rows.iterate(since?.getTime() ?? 0",
    fault: "0 → 1",
    why: "no record is of the first millisecond of 1970",
  },
  {
    file: "src/plants/sqlite/backup.ts",
    line: "throw new StoreOpenError(`cannot write ${copy}: ${fileProblemOf",
    fault: "cause: fault",
    why: "the message says all of it to an operator; the cause is for whoever debugs",
  },
  {
    file: "src/plants/sqlite/backup.ts",
    line: 'if (process.platform === "win32") return;',
    fault: 'process.platform === "win32" → false',
    why: "no test runs on Windows",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "const question = wakeUp.nextQuestion(",
    fault: "cameAlone →",
    why: "to sleep at once, or a little later, costs time alone",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "const question = wakeUp.nextQuestion(",
    fault: "0 → 1",
    why: "to sleep a millisecond later costs time alone",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "else if (performance.now() >= nextDropMs)",
    fault: "performance.now() >= nextDropMs → true",
    why: "to look for old records more often costs time alone",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "else if (performance.now() >= nextDropMs)",
    fault: "performance.now() >= nextDropMs → performance.now() >",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "if (awakeMs > 0) this.#stayAwake(",
    fault: "awakeMs > 0 →",
    why: "to sleep at once, or a little later, costs time alone",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "while (Atomics.load(",
    fault: "performance.now() < until → performance.now() <=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "nextQuestion(port: MessagePort, timeoutMs: number, awakeMs = 0)",
    fault: "0 → 1",
    why: "to sleep a millisecond later costs time alone",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "Atomics.add(this.#announced, 0, 1);",
    fault: "1 → 2",
    why: "any other number shows that something was announced",
  },
  {
    file: "src/plants/sqlite/storage-thread.ts",
    line: "return new Error(`the storage thread answered another question",
    why: "the thread answers in the order of its questions; to ask is for the compiler",
  },
  {
    file: "src/plants/sqlite/database.ts",
    line: "if (major !== 3) return major > 3;",
    fault: "major > 3 → major >=",
    why: "3 itself does not come here",
  },
  {
    file: "src/plants/sqlite/database.ts",
    line: "const [major = 0, minor = 0, patch = 0] =",
    why: "each release of SQLite has three numbers",
  },
  {
    file: "src/plants/sqlite/store.ts",
    line: "findProblem: async (hasWorked) =>",
    fault: "hasWorked → false",
    why: "to prove by a write what a deletion has proved costs time alone",
  },
  {
    file: "src/plants/sqlite/file-identity.ts",
    line: 'return "other";',
    why: "whatever is neither in place nor missing is another",
  },
];
