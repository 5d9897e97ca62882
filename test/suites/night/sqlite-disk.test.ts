import { once } from "node:events";
import { copyFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { openSqliteStore } from "../../../src/stores/index.ts";
import { openSqliteDatabase } from "../../../src/stores/sqlite/plant-database.ts";
import { closing, createTempFolder, projectFolder, startProgram, waitLimitMs } from "@protoport/testing/process";
import { deleteCall, refusalOf } from "../../support/plants/index.ts";
import { plantsIn } from "../../support/plants/sqlite-file.ts";
import { canTrace, runWithFault, traceCalls } from "../../../protoport/testing/src/process/trace-calls.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";

const plants = 30;
const timeout = 120_000;
const away = "the plant store cannot process the request at the moment";
const unknown = "the outcome of the deletion is unknown; repeating the request is safe";
const deleting = new URL("../../support/plants/delete-through-faults.ts", import.meta.url).pathname;

async function createPlants(file: string): Promise<void> {
  await (await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: BigInt(plants) } })).close();
}

// By then the file is open and some plants are deleted.
// oxfmt-ignore
const faults = [
  {
    name: "a sync fails",
    fault: "fsync,fdatasync:error=EIO:when=10",
    problem: "reading from or writing to the disk failed",
    // Later syncs succeed, although the data of the failed sync is lost.
    passes: false,
    // Time for three write checks.
    patienceMs: 3_500,
  },
  { name: "the disk is full for a while", fault: "write,pwrite64:error=ENOSPC:when=40..41", problem: "the disk is full",
    passes: true, patienceMs: waitLimitMs },
];

describe("a store on SQLite with a failing disk", () => {
  test.runIf(canTrace()).each(faults)("if $name, acknowledges only stored deletions", { timeout }, async (row) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await createPlants(file);
    const program = [deleting, file, String(plants), String(row.patienceMs)];
    const { outcomes, problems } = JSON.parse(runWithFault(row.fault, `${file}-wal`, program));
    const failed = outcomes.findIndex((outcome: unknown) => outcome !== true);
    expect(failed).toBeGreaterThan(0);
    // The commit itself has failed, so the state after a restart is unknown.
    expect(outcomes[failed]).toBe(unknown);
    const text = `${file}: ${row.problem}`;
    expect(problems).toEqual([text, row.passes ? null : text]);
    expect(new Set(outcomes.slice(failed + 1))).toEqual(new Set([row.passes ? true : away]));
    const left = plantsIn(file).filter((id) => id !== BigInt(failed + 1));
    expect(left).toEqual(outcomes.flatMap((outcome: unknown, i: number) => (outcome === away ? [BigInt(i + 1)] : [])));
  });
});

test.runIf(canTrace())("an SQLite store reports a full disk even without existing plants", { timeout }, async () => {
  using folder = createTempFolder();
  const file = folder.file("plants.db");
  await createPlants(file);
  // A commit that deletes nothing writes nothing.
  const program = `
      import { setTimeout as sleep } from "node:timers/promises";
      import { openSqliteStore } from "${new URL("../../../src/stores/sqlite/sqlite-store.ts", import.meta.url).href}";
      const store = await openSqliteStore({ file: "${file}" });
      const call = { subject: "", requestId: "", context: { signal: new AbortController().signal } };
      for (let waitedMs = 0; waitedMs < ${waitLimitMs} && store.problem === undefined; waitedMs += 100) {
        await store.delete(99n, call);
        await sleep(100);
      }
      process.stdout.write(String(store.problem));
      await store.close();`;
  const problem = runWithFault("write,pwrite64:error=ENOSPC", `${file}-wal`, ["--input-type=module", "-e", program]);
  expect(problem).toBe(`${file}: the disk is full`);
});

test.runIf(canTrace())("an SQLite store with a leftover log opens on a full disk", { timeout }, async () => {
  using folder = createTempFolder();
  const file = folder.file("left.db");
  const store = await openSqliteStore({ file: folder.file("plants.db"), plantsWhenCreated: { first: 1n, last: 30n } });
  await store.delete(1n, deleteCall());
  for (const end of ["", "-wal"]) copyFileSync(`${folder.file("plants.db")}${end}`, `${file}${end}`);
  await store.close();
  const opened = runWithFault("write,pwrite64,ftruncate:error=ENOSPC", file, [deleting, file, "2", "0"]);
  expect(JSON.parse(opened)).toEqual({ outcomes: [false, true], problems: [] });
});

describe("a store on SQLite with failing checkpoints", () => {
  const text = "its write-ahead log cannot be copied into the file: reading from or writing to the disk failed";
  test.runIf(canTrace()).each([
    { call: "a write", fault: "write,pwrite64:error=EIO:when=1..16" },
    { call: "a sync", fault: "fsync,fdatasync:error=EIO:when=1..16" },
  ])("becomes unready within 90 s if $call fails, and recovers without loss", { timeout: 240_000 }, ({ fault }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    openDatabase({ file, plantsWhenCreated: { first: 1n, last: 2_001n } }).close();
    const program = new URL("../../support/plants/delete-through-stalled-checkpoints.ts", import.meta.url).pathname;
    expect(JSON.parse(runWithFault(fault, file, [program, file, "2000", "90000"]))).toEqual({
      deleted: 2_000,
      during: {
        problem: `${file}: ${text}`,
        needsRestart: false,
        file: { hasSecondName: false, areCheckpointsStalled: true },
      },
      refusal: expect.stringContaining(away),
      after: { problem: null, file: { hasSecondName: false, areCheckpointsStalled: false } },
      last: "true",
      events: [
        { kind: "checkpoints-stalled", problem: text },
        { kind: "checkpoints-resumed", lastedMs: expect.any(Number) },
      ],
    });
    // The file with its log, as an operator copies them from the failing disk.
    openDatabase({ file: `${file}.rescued` }).close();
    expect(plantsIn(`${file}.rescued`)).toEqual([2_001n]);
    expect(plantsIn(file)).toEqual([]);
  });
});

function backingUp(file: string, copy: string): string[] {
  const module = new URL("../../../src/stores/sqlite/backup.ts", import.meta.url).href;
  return ["--input-type=module", "-e", `import { backUp } from "${module}"; backUp("${file}", "${copy}");`];
}

describe("a backup", () => {
  test.runIf(canTrace())("is synced before its final rename, and its folder after it", { timeout }, async () => {
    using folder = createTempFolder();
    await createPlants(folder.file("plants.db"));
    const program = backingUp(folder.file("plants.db"), folder.file("copy.db"));
    const steps = traceCalls(["openat", "fsync", "link", "linkat"], program).flatMap((line) => [
      ...(/openat\(.*copy\.db\.[0-9a-f]+\.unfinished", O_RDONLY/.test(line) ? ["written"] : []),
      ...(/fsync\(\d+<[^>]*copy\.db\.[0-9a-f]+\.unfinished>\)\s+= 0/.test(line) ? ["content"] : []),
      ...(/link(?:at)?\(.*copy\.db"/.test(line) ? ["name"] : []),
      ...(line.includes(`<${folder.path}>)`) ? ["folder"] : []),
    ]);
    // SQLite itself syncs before that, which its documentation does not guarantee.
    expect(steps.slice(-4)).toEqual(["written", "content", "name", "folder"]);
  });

  test.runIf(canTrace())("is removed if its folder cannot be synced", { timeout }, async () => {
    using folder = createTempFolder();
    await createPlants(folder.file("plants.db"));
    const program = backingUp(folder.file("plants.db"), folder.file("copy.db"));
    expect(() => runWithFault("fsync:error=EIO", folder.path, program)).toThrow();
    expect(readdirSync(folder.path)).toEqual(["plants.db"]);
  });
});

describe("another process's long lock on the file", () => {
  test("delays an import, which then continues", { timeout }, async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await createPlants(file);
    await using database = await openSqliteDatabase(file);
    await using running = await database.startImport();
    // An import blocks the event loop, so another thread must hold the lock.
    const program = `
      import { parentPort, workerData } from "node:worker_threads";
      import { DatabaseSync } from "node:sqlite";
      const db = new DatabaseSync(workerData);
      db.exec("BEGIN IMMEDIATE");
      parentPort.postMessage("locked");
      setTimeout(() => db.close(), 6_500);`;
    const locking = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), { workerData: file });
    const ended = once(locking, "exit");
    await once(locking, "message");
    await expect(running.add([100n])).resolves.toEqual({ added: 1, present: 0, deleted: 0 });
    await ended;
  });

  test("does not hide that the storage thread exited", { timeout }, async () => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    const started = once(process, "worker");
    await createPlants(file);
    await started;
    const startedAgain = once(process, "worker");
    await using store = closing(await openSqliteStore({ file, lockTimeoutMs: 2_000 }));
    const [thread] = await startedAgain;
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    expect((await refusalOf(store.delete(1n, deleteCall()))).rawMessage).toBe(away);
    // In the middle of the next write check.
    await sleep(2_000);
    await thread.terminate();
    await expect.poll(() => store.problem).toBe(`${file}: the storage thread has exited`);
    other.close();
    await sleep(1_500);
    await expect(store.delete(1n, deleteCall())).rejects.toMatchObject({ rawMessage: away });
  });
});

// A separate 16 MiB disk, which is full until the second start.
const startOnFullDisk = `
  mount -t tmpfs -o size=16m none "$1"
  cd "$1"
  "$2" "$3" migrate
  cat /dev/zero > full || true
  "$2" "$3" serve || echo "exited with $?" >&2
  rm full
  exec "$2" "$3" serve`;

test("a server starts only once its disk has free space", async () => {
  using folder = createTempFolder();
  const program = [process.execPath, join(projectFolder, "src/command/main.ts")];
  const inShell = ["sh", "-ec", startOnFullDisk, "sh", folder.path, ...program];
  const environment = { DATABASE_URL: "sqlite:plants.db", PORT: "0", PLANTSTORE_DRAIN_DELAY_MS: "0" };
  await using server = startProgram("unshare", ["--user", "--map-root-user", "--mount", ...inShell], "/", environment);
  await server.find(/cannot open plants\.db: its -shm file cannot be extended, probably because the disk is full/);
  await server.find(/^exited with 1$/m);
  await server.find(/"msg":"listening"/);
});

describe("an idle store on SQLite", () => {
  test.each(
    // oxfmt-ignore
    [
      { name: "its file is moved", take: (file: string) => renameSync(file, `${file}.moved`),
        problem: "the file was moved, replaced or deleted" },
      { name: "its -shm file is deleted", take: (file: string) => rmSync(`${file}-shm`),
        problem: "its -shm file, which holds the locks, was moved, replaced or deleted; restart the server" },
    ],
  )("reports a problem when $name, without any call", { timeout: 60_000 }, async ({ take, problem }) => {
    using folder = createTempFolder();
    const file = folder.file("plants.db");
    await using store = closing(await openSqliteStore({ file, plantsWhenCreated: { first: 1n, last: 2n } }));
    take(file);
    await expect.poll(() => store.problem).toBe(`${file}: ${problem}`);
  });
});
