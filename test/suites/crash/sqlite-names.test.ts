import { existsSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backUp } from "../../../src/stores/index.ts";
import { openDatabase } from "../../../src/stores/sqlite/database.ts";
import { DeleteTally, startDeleteLoad } from "../../support/plants/delete-load.ts";
import { plantsIn, readSqlite } from "../../support/plants/sqlite-file.ts";
import { canMount, mountFor, startWithMounts, unmountFor } from "../../support/process/mounts.ts";
import { tokens } from "../../support/server/plant-server.ts";
import { type CommandLine, createTempFolder, rowsFor, type TempFolder } from "@protoport/testing/process";

const timeout = 120_000;
const plants = 100_000n;
/** A store name `volume/plants.db`, relative to its folder. `mounts` are shell commands. */
type StoreName = { name: string; path: string; mounts?: string; link?: (folder: TempFolder) => void };

const mountedFile: StoreName = {
  name: "a file mounted without its folder",
  path: "data/plants.db",
  mounts: "touch data/plants.db; mount --bind volume/plants.db data/plants.db",
};

// oxfmt-ignore
const refused: readonly (StoreName & { readonly problem: RegExp })[] = [
  { name: "a hard link", path: "data/plants.db",
    link: (folder) => linkSync(folder.file("volume/plants.db"), folder.file("data/plants.db")),
    problem: /the file has 2 names \(hard links\)/ },
  { ...mountedFile, problem: /the file itself is a mount point.*: mount the folder, not the file/ },
];

// oxfmt-ignore
const accepted: readonly StoreName[] = [
  { name: "in a bind-mounted folder", path: "data/plants.db", mounts: "mount --bind volume data" },
  { name: "in a folder on a volume", path: "data/plants.db",
    mounts: "mount -t tmpfs tmpfs data; cp -p volume/plants.db data/" },
  { name: "in a folder mounted as a subPath", path: "data/sub/plants.db",
    mounts: "mkdir -p data/sub; mount --bind volume data/sub" },
  {
    name: "on an overlay file system",
    path: "data/plants.db",
    // The upper folder cannot be on another overlay.
    mounts: `mount -t tmpfs tmpfs upper; mkdir upper/changed upper/work
      mount -t overlay overlay -o lowerdir=volume,upperdir=upper/changed,workdir=upper/work data`,
  },
  { name: "as a symbolic link to a file in a mounted folder", path: "data/link.db", mounts: "mount --bind volume data",
    link: (folder) => symlinkSync("plants.db", folder.file("volume/link.db")) },
];

// oxfmt-ignore
const commands: readonly (readonly string[])[] = [
  ["serve"], ["check"], ["migrate"], ["import", "ids"], ["export"], ["deletions"], ["backup", "copy.db"],
  ["restore", "backup.db"],
];

function createStore(folder: TempFolder, last = 3n): string {
  for (const name of ["volume", "data", "upper"]) mkdirSync(folder.file(name));
  const file = folder.file("volume/plants.db");
  openDatabase({ file, plantsWhenCreated: { first: 1n, last } }).close();
  backUp(file, folder.file("backup.db"));
  writeFileSync(folder.file("ids"), "7\n");
  return file;
}

const start = ({ path, mounts = "" }: StoreName, args: readonly string[], folder: TempFolder): CommandLine =>
  startWithMounts(mounts, args, folder.path, {
    DATABASE_URL: `sqlite:${folder.file(path)}`,
    PLANTSTORE_TOKENS: tokens.good,
    PLANTSTORE_DRAIN_DELAY_MS: "0",
    ...(args[0] === "serve" && { PORT: "0", PLANTSTORE_ADMIN_ADDRESS: "0" }),
  });

const listening = /"address":"127.0.0.1","port":(\d+),[^\n]*"msg":"listening"/;

/** Runs a command, and stops a server once it listens. */
async function run(command: CommandLine, isServer: boolean): Promise<{ code: number | null; output: string }> {
  if (isServer) {
    const started = await command.find(listening).catch(() => undefined);
    if (started !== undefined) command.process.kill("SIGTERM");
  }
  return { code: await command.end(), output: command.stdout() + command.stderr() };
}

// Without the right to mount, only the test cases without mounts run.
const isMountTried = canMount();
if (!isMountTried) process.stderr.write("not tried, because this machine does not allow mount --bind: mounted files\n");

describe.runIf(isMountTried)("a store's second path", () => {
  for (const name of refused)
    test.each(commands)(`as ${name.name} is refused by %s with exit code 1`, { timeout }, async (...args) => {
      using folder = createTempFolder();
      const file = createStore(folder);
      name.link?.(folder);
      await using command = start(name, args, folder);
      const { code, output } = await run(command, args[0] === "serve");
      expect({ code, output }).toEqual({ code: 1, output: expect.stringMatching(name.problem) });
      expect([existsSync(`${file}-wal`), existsSync(folder.file("copy.db"))]).toEqual([false, false]);
      expect(plantsIn(file)).toEqual([1n, 2n, 3n]);
    });

  test.each([["serve"], ["check"]])("as a link to a mounted file is refused by %s", { timeout }, async (command) => {
    using folder = createTempFolder();
    createStore(folder);
    symlinkSync("plants.db", folder.file("data/link.db"));
    await using started = start({ ...mountedFile, path: "data/link.db" }, [command], folder);
    const { code, output } = await run(started, command === "serve");
    expect({ code, output }).toEqual({ code: 1, output: expect.stringMatching(/the file itself is a mount point/) });
  });

  for (const name of accepted) {
    // Each command on one of the paths. The nightly run has all combinations.
    test.each(rowsFor(name, accepted, commands))(
      `${name.name} is accepted by %s, which exits with 0`,
      { timeout },
      async (...args) => {
        using folder = createTempFolder();
        createStore(folder);
        name.link?.(folder);
        await using command = start(name, args, folder);
        const { code, output } = await run(command, args[0] === "serve");
        expect({ code, output }).toMatchObject({ code: 0 });
      },
    );
  }
});

describe.runIf(isMountTried)("two servers on a folder that is mounted twice", () => {
  test("delete each plant once, and lose no deletion when both are killed", { timeout }, async () => {
    using folder = createTempFolder();
    const file = createStore(folder, plants);
    // Both servers delete the even plants. Only one deletes each odd plant, so that the slower one deletes, too.
    const tallies = [0n, 50_000n].map((offset) => new DeleteTally((call) => (call % 2n === 0n ? call : call + offset)));
    {
      const names = [
        { name: "", path: "volume/plants.db" },
        { name: "", path: "data/plants.db", mounts: "mount --bind volume data" },
      ];
      await using started = new AsyncDisposableStack();
      const servers = names.map((name) => started.use(start(name, ["serve"], folder)));
      const loads = await Promise.all(
        servers.map(async (server, i) => {
          const [, port] = await server.find(listening);
          return startDeleteLoad({ address: "127.0.0.1", port: Number(port) }, tallies[i] ?? new DeleteTally());
        }),
      );
      await Promise.all(loads.map((load) => load.acknowledged(850)));
      for (const server of servers) server.process.kill("SIGKILL");
      await Promise.all(loads.map((load) => load.stop()));
    }
    const [first, second] = tallies.map(({ deleted }) => deleted);
    const [askedOfFirst, askedOfSecond] = tallies.map(({ asked }) => asked);
    // Each server was asked for at least 850 plants, half of them even.
    expect([...(askedOfFirst ?? [])].filter((id) => askedOfSecond?.has(id)).length).toBeGreaterThan(400);
    expect([...(first ?? [])].filter((id) => second?.has(id))).toEqual([]);
    const left = new Set(plantsIn(file));
    expect(tallies.flatMap(({ deleted }) => [...deleted]).filter((id) => left.has(id))).toEqual([]);
    expect(readSqlite(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });
});

// oxfmt-ignore
const appearing: readonly { name: string; add: (file: string, pid: number) => void; remove: typeof mountFor }[] = [
  { name: "a hard link", add: (file) => linkSync(file, `${file}.second`),
    remove: (_pid, file) => rmSync(`${file}.second`) },
  { name: "a mount", add: (file, pid) => mountFor(pid, file), remove: unmountFor },
];

describe.runIf(isMountTried)("a server with a file that gets a second name", () => {
  test.each(appearing)("warns about $name in its log and metric, and stays ready", { timeout }, async (row) => {
    using folder = createTempFolder();
    const file = createStore(folder);
    await using server = start({ name: "", path: "volume/plants.db" }, ["serve"], folder);
    const [, admin] = await server.find(/"port":(\d+),"msg":"serving metrics"/);
    const [, port] = await server.find(listening);
    const secondName = async (): Promise<string | undefined> => {
      const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
      return /^plantstore_sqlite_second_name (\d)$/m.exec(metrics)?.[1];
    };
    const { pid } = server.process;
    if (pid === undefined) throw new Error("the server has no process");
    expect(await secondName()).toBe("0");
    row.add(file, pid);
    await server.find(/"errorCode":"ERR_STORE_SECOND_NAME","problem":"the file /);
    await expect.poll(secondName).toBe("1");
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
    const header = { authorization: `Bearer ${tokens.good}` };
    expect((await fetch(`http://127.0.0.1:${port}/plants/1`, { method: "DELETE", headers: header })).status).toBe(204);
    row.remove(pid, file);
    await server.find(/the file of the store has a single name again/);
    await expect.poll(secondName).toBe("0");
  });
});
