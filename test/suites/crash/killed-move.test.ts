import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import type { PlantLocation } from "../../../src/stores/index.ts";
import { compileCache, createTempFolder } from "@protoport/testing/process";
// oxfmt-ignore
import { createUsedStore, isUsable, kindsOf, move, plantsOf, recordsOf, reopen
} from "../../support/plants/moved-stores.ts";
import { startPostgresOfFile } from "../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();
const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const { sqlite, postgres } = kindsOf(folder, server);
const program = fileURLToPath(new URL("../../support/plants/move-until-killed.ts", import.meta.url));
/** The number of kills during the COMMIT. With a number, a move is also killed before and after each operation. */
const killsAtCommit = Number(process.env["MOVE_KILLS"] ?? 3);
const step = process.env["MOVE_KILLS"] === undefined ? 5 : 1;

function runMove(from: PlantLocation, to: PlantLocation, at = 0, when = "never") {
  const words = [program, JSON.stringify(from), JSON.stringify(to), String(at), when];
  return spawnSync(process.execPath, words, { encoding: "utf8", env: { PATH: process.env["PATH"], ...compileCache } });
}

const contentOf = async (location: PlantLocation) => ({
  plants: await plantsOf(location),
  records: await recordsOf(location),
});

describe.each([
  { name: "from SQLite to PostgreSQL", from: sqlite, to: postgres },
  { name: "from PostgreSQL to SQLite", from: postgres, to: sqlite },
])("a move $name", ({ from, to }) => {
  const timeout = 1_200_000;
  test("that is killed leaves at most one usable store, and is finished or undone", { timeout }, async () => {
    const whole = runMove(await createUsedStore(from), await to.create());
    expect(whole.stderr).toBe("");
    const operations: string[] = JSON.parse(whole.stdout);
    const commit = operations.lastIndexOf("commit") + 1;
    const steps = operations.map((_, i) => i + 1).filter((at) => at % step === 0 || at === commit);
    const kills = [
      ...steps.flatMap((at) => ["before", "after"].map((when) => ({ at, when }))),
      ...Array.from({ length: killsAtCommit }, () => ({ at: commit, when: "during" })),
    ];
    for (const [round, { at, when }] of kills.entries()) {
      const [source, target] = [await createUsedStore(from), await to.create()];
      const before = await contentOf(source);
      const { signal, stderr } = runMove(source, target, at, when);
      expect({ at, when, signal, stderr }).toEqual({ at, when, signal: "SIGKILL", stderr: "" });
      const [isSource, isTarget] = [await isUsable(source), await isUsable(target)];
      const isFilled = isTarget && (await plantsOf(target)).length > 0;
      expect({ at, when, areBoth: isSource && isFilled }).toEqual({ at, when, areBoth: false });
      if (isFilled || round % 2 === 0) {
        await move(source, target);
        expect([await isUsable(source), await isUsable(target)]).toEqual([false, true]);
        expect(await contentOf(target)).toEqual(before);
      } else {
        if (!isSource || !isTarget) await reopen(source, target);
        expect([await isUsable(source), await isUsable(target)]).toEqual([true, true]);
        expect([await contentOf(source), await plantsOf(target)]).toEqual([before, []]);
      }
    }
  });
});
