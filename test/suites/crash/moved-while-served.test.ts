import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { migratePlants, type PlantLocation } from "../../../src/stores/index.ts";
import { type CommandLine, createTempFolder } from "@protoport/testing/process";
// oxfmt-ignore
import { DeleteTally, runSql, startDeleteLoad, startPgbouncer, startPostgresOfFile
} from "../../support/plants/index.ts";
// oxfmt-ignore
import { importInto, interruptMove, isUsable, kindsOf, move, plantsOf, reopen
} from "../../support/plants/moved-stores.ts";
import { startCommandLine } from "../../support/process/command-line.ts";
import { tokens } from "../../support/server/plant-server.ts";

const server = await startPostgresOfFile();
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const { sqlite, postgres } = kindsOf(folder, server);
const plants = Array.from({ length: 200_000 }, (_, i) => BigInt(i + 1));
const timeout = 120_000;

async function startServer(databaseUrl: string): Promise<{ readonly line: CommandLine; readonly port: number }> {
  const plantstore = { PLANTSTORE_TOKENS: tokens.good, PLANTSTORE_DRAIN_DELAY_MS: "0" };
  const line = startCommandLine(["serve"], folder.path, { PORT: "0", DATABASE_URL: databaseUrl, ...plantstore });
  const [, port] = await line.find(/"port":(\d+)/);
  return { line, port: Number(port) };
}

const databaseUrlOf = (location: PlantLocation): string =>
  "url" in location ? location.url : `sqlite:${"path" in location ? location.path : ""}`;

/** Deletes plants with a server of the source, moves the source, and compares the acknowledgements with the target. */
async function moveUnderLoad(
  source: PlantLocation,
  target: PlantLocation,
  options: { readonly databaseUrl?: string; readonly during?: (line: CommandLine) => Promise<void> } = {},
): Promise<DeleteTally> {
  const { line, port } = await startServer(options.databaseUrl ?? databaseUrlOf(source));
  await using _ = line;
  const tally = new DeleteTally();
  const load = startDeleteLoad({ address: "127.0.0.1", port }, tally);
  await load.acknowledged(500);
  if (options.during === undefined) await move(source, target);
  else await options.during(line);
  // The server would acknowledge further deletions now.
  await sleep(500);
  await load.stop();
  expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
  const left = new Set(await plantsOf(target));
  expect([...tally.deleted].filter((id) => left.has(id))).toEqual([]);
  expect(plants.filter((id) => !left.has(id) && !tally.asked.has(id))).toEqual([]);
  expect([...tally.notFound]).toEqual([]);
  return tally;
}

const ways = [
  { name: "from SQLite to PostgreSQL", from: sqlite, to: postgres },
  { name: "from PostgreSQL to SQLite", from: postgres, to: sqlite },
];

test.each(ways)("a move $name takes every acknowledged deletion of a busy server along", { timeout }, async (way) => {
  const [source, target] = [await way.from.create(), await way.to.create()];
  await importInto(source, plants);
  await moveUnderLoad(source, target);
});

test.each(ways)("a move $name is not undone by a server that was stopped meanwhile", { timeout }, async (way) => {
  const [source, target] = [await way.from.create(), await way.to.create()];
  await importInto(source, plants);
  await moveUnderLoad(source, target, {
    during: async (line) => {
      for (let isMoved = false; !isMoved;) {
        line.process.kill("SIGSTOP");
        // Fails if the server was stopped in a transaction, whose locks it keeps.
        const moving = move(source, target).then(() => true);
        isMoved = await moving.catch(() => false);
        expect((await isUsable(source)) && (await isUsable(target))).toBe(false);
        line.process.kill("SIGCONT");
        if (!isMoved) await sleep(Math.random() * 20);
      }
    },
  });
});

test("a move is not undone by a server behind a pooler that was stopped meanwhile", { timeout }, async () => {
  const administration = await server.createSchema();
  await runSql(administration, "CREATE DATABASE plantstore");
  const direct = administration.replace("/postgres?", "/plantstore?").replace(/&options=.*/, "");
  await using pooler = await startPgbouncer(server.socketFolder);
  const source: PlantLocation = { kind: "postgres", url: direct };
  const target = await sqlite.create();
  await migratePlants(source);
  await importInto(source, plants);
  await moveUnderLoad(source, target, {
    databaseUrl: pooler.url,
    during: async () => {
      for (let isMoved = false; !isMoved;) {
        pooler.signal("SIGSTOP");
        const moving = move(source, target).then(() => true);
        isMoved = await moving.catch(() => false);
        pooler.signal("SIGCONT");
        if (!isMoved) await sleep(Math.random() * 20);
      }
    },
  });
});

test("a server of an interrupted move's source deletes again once the move was undone", { timeout }, async () => {
  for (const { from, to } of ways) {
    const [source, target] = [await from.create(), await to.create()];
    await importInto(source, plants);
    const { line, port } = await startServer(databaseUrlOf(source));
    await using _ = line;
    const tally = new DeleteTally();
    const load = startDeleteLoad({ address: "127.0.0.1", port }, tally);
    await load.acknowledged(200);
    await interruptMove(source, target);
    await reopen(source, target);
    await load.acknowledged(200);
    await load.stop();
    const left = new Set(await plantsOf(source));
    expect([...tally.deleted].filter((id) => left.has(id))).toEqual([]);
    expect([...tally.notFound]).toEqual([]);
  }
});
