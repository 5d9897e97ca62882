import { describe, expect, test } from "vitest";
import { closing } from "../../../protoport/testing/src/closing.ts";
import { collect } from "../../../protoport/testing/src/collect.ts";
import { createTempFolder, type TempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";
import { checkPlantStore, migratePlants, type PlantLocation } from "../../../src/stores/index.ts";
import type { PlantImport } from "../../../src/stores/contract/plant-database.ts";
import { deleteCall } from "./delete-call.ts";
// oxfmt-ignore
import { deleteEach, deleteTogether, deletionsKeptMs, type Interleaving, moreThanOneChunk, type Opened, type Pauses,
  upTo, withDatabase, withImport, withRetention } from "./job-steps.ts";
import { importInto, move, plantsOf } from "./moved-stores.ts";
import type { OpenWithDatabase } from "./opened-store.ts";
import { createMissingStore } from "./sqlite-file.ts";

/** The jobs of operators, and the one of a server, in every store. */
type Job = "import" | "import --restore" | "export" | "deletions" | "retention" | "move" | "migrate" | "check";

/** The facts about each job. A job without facts does not compile. */
// oxfmt-ignore
const interleavings: Readonly<Record<Job, readonly Interleaving[]>> = {
  import: [{
      fact: "skips plants whose deletion was acknowledged between its batches",
      plants: [1n, 2n],
      run: (opened) =>
        withImport(opened, async (running) => {
          await expect(running.add([1n, 3n])).resolves.toEqual({ added: 1, present: 1, deleted: 0 });
          await expect(deleteEach(opened.store, [1n, 3n])).resolves.toEqual([true, true]);
          await expect(running.add([1n, 3n, 4n])).resolves.toEqual({ added: 1, present: 0, deleted: 2 });
          expect(await opened.plants()).toEqual([2n, 4n]);
        }),
    }, {
      fact: "adds a plant that a deletion between two batches did not find",
      plants: [],
      run: (opened) =>
        withImport(opened, async (running) => {
          await running.add([1n]);
          await expect(opened.store.delete(2n, deleteCall({ idempotencyKey: "early" }))).resolves.toBe(false);
          await expect(running.add([2n])).resolves.toEqual({ added: 1, present: 0, deleted: 0 });
          expect(await opened.plants()).toEqual([1n, 2n]);
        }),
    }, {
      fact: "leaves exactly the plants that concurrent deletions did not find",
      plants: upTo(20),
      run: (opened) =>
        withImport(opened, async (running) => {
          const ids = upTo(40);
          const [outcomes] = await Promise.all([deleteTogether(opened.store, ids), running.add(ids)]);
          expect(outcomes.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => true));
          expect(await opened.plants()).toEqual(ids.filter((_, i) => outcomes[i] === false));
        }),
    }, {
      fact: "restores no plant deleted before its commit, and adds new plants",
      plants: [1n, 2n],
      run: (opened, { holdImports }) =>
        withImport(opened, async (running) => {
          const held = await holdImports?.(opened);
          const adding = running.add([1n, 3n]);
          await held?.reached?.();
          // Without a pause, plant 3 may be added before its deletion.
          const [, found] = await deleteEach(opened.store, [1n, 3n]);
          await held?.release();
          await adding;
          expect(await opened.plants()).toEqual(found === true ? [2n] : [2n, 3n]);
        }),
    }, {
      fact: "restores no plant that is deleted while another import adds it",
      plants: upTo(20),
      run: (opened) =>
        withImport(opened, (one) =>
          withImport(opened, async (other) => {
            const deleting = deleteTogether(opened.store, upTo(10));
            const [outcomes] = await Promise.all([deleting, one.add(upTo(20)), other.add(upTo(20))]);
            expect(outcomes).not.toContain(false);
            expect(await opened.plants()).toEqual(upTo(20).slice(10));
          }),
        ),
    }, {
      fact: "skips plants that are deleted after retention has dropped older records",
      plants: upTo(5),
      run: (opened) =>
        withImport(opened, async (running) => {
          await deleteEach(opened.store, [1n, 2n]);
          await running.add([1n, 2n]);
          await opened.database.age(3);
          await opened.store.delete(3n, deleteCall());
          await withRetention(opened, async (again) => {
            await expect.poll(() => opened.database.recorded()).toEqual([3n]);
            await deleteEach(again, [4n]);
            await expect(running.add([3n, 4n, 5n])).resolves.toEqual({ added: 0, present: 1, deleted: 2 });
          });
          expect(await opened.plants()).toEqual([5n]);
        }),
    }],
  "import --restore": [{
      fact: "restores exactly the plants that it counts as added, and keeps the record of every deletion",
      plants: upTo(20),
      run: async (opened) => {
        const restoring = async (running: PlantImport): Promise<void> => {
          const deleting = deleteTogether(opened.store, upTo(20));
          const [outcomes, { added, present }] = await Promise.all([deleting, running.add(upTo(20))]);
          expect(outcomes).not.toContain(false);
          expect(added + present).toBe(20);
          expect(await opened.plants()).toHaveLength(added);
          expect((await opened.database.recorded()).toSorted((one, other) => Number(one - other))).toEqual(upTo(20));
        };
        await withImport(opened, restoring, { restore: true });
      },
    }, {
      fact: "keeps a plant whose deletion is repeated by key between batches",
      plants: [1n],
      run: async (opened) => {
        await opened.store.delete(1n, deleteCall({ idempotencyKey: "key" }));
        const restoring = async (running: PlantImport): Promise<void> => {
          await running.add([1n]);
          await expect(opened.store.delete(1n, deleteCall({ idempotencyKey: "key" }))).resolves.toBe(true);
          await expect(running.add([1n])).resolves.toEqual({ added: 0, present: 1, deleted: 0 });
        };
        await withImport(opened, restoring, { restore: true });
        expect(await opened.plants()).toEqual([1n]);
      },
    }],
  export: [{
      fact: "prints one snapshot while plants are deleted, imported and restored",
      plants: moreThanOneChunk,
      run: async (opened) => {
        const last = BigInt(moreThanOneChunk.length);
        await opened.store.delete(last - 2n, deleteCall());
        const expected = moreThanOneChunk.filter((id) => id !== last - 2n);
        await withDatabase(opened, async (database) => {
          const chunks = database.exportPlants()[Symbol.asyncIterator]();
          const first = await chunks.next();
          await opened.store.delete(last, deleteCall());
          const restoring = async (running: PlantImport) => void (await running.add([last - 2n, last + 1n]));
          await withImport(opened, restoring, { restore: true });
          const rest = await collect({ [Symbol.asyncIterator]: () => chunks });
          expect([first.value, ...rest].flat()).toEqual(expected);
        });
        expect(await opened.plants()).toEqual([...moreThanOneChunk.slice(0, -1), last + 1n]);
      },
    }],
  deletions: [{
      fact: "prints one snapshot while records are added, and dropped by retention",
      plants: [1n],
      run: async (opened, { oldRecordsSql }) => {
        await opened.database.run(oldRecordsSql);
        await withDatabase(opened, async (database) => {
          const chunks = database.listDeletions()[Symbol.asyncIterator]();
          const first = await chunks.next();
          await opened.store.delete(1n, deleteCall());
          await withRetention(opened, () => expect.poll(() => opened.database.recorded()).toEqual([1n]));
          const rest = await collect({ [Symbol.asyncIterator]: () => chunks });
          expect([first.value, ...rest].flat()).toHaveLength(10_001);
        });
      },
    }],
  retention: [{
      fact: "keeps all plants, and the records and keys of concurrent deletions",
      plants: [1n, 2n, 3n, 4n],
      run: async (opened, { holdRetention }) => {
        await deleteEach(opened.store, [1n], "old");
        await opened.database.age(3);
        await deleteEach(opened.store, [2n], "young");
        const held = await holdRetention(opened);
        const opening = opened.reopen({ deletionsKeptMs });
        await held.reached?.();
        const deleting = deleteEach(opened.store, [3n], "meanwhile");
        await held.release();
        await expect(deleting).resolves.toEqual([true]);
        await using again = closing(await opening);
        await expect.poll(() => opened.database.recorded()).toEqual([2n, 3n]);
        await opened.database.run("INSERT INTO plants VALUES (2), (3)");
        // Repeated by their keys, so that the restored plants stay.
        await expect(deleteEach(again, [2n], "young")).resolves.toEqual([true]);
        await expect(deleteEach(again, [3n], "meanwhile")).resolves.toEqual([true]);
        expect(await opened.plants()).toEqual([2n, 3n, 4n]);
      },
    }],
  move: [{
      fact: "moves every plant that the source's server does not delete, and the server deletes nothing afterwards",
      plants: upTo(40),
      run: async (opened) => {
        using folder = createTempFolder();
        const target = emptyFile(folder);
        const deleting = Promise.allSettled(upTo(20).map((id) => opened.store.delete(id, deleteCall())));
        await move(opened.database.location, target);
        const settled = await deleting;
        const deleted = upTo(20).filter((_, i) => {
          const one = settled[i];
          return one?.status === "fulfilled" && one.value;
        });
        expect(await plantsOf(target)).toEqual(upTo(40).filter((id) => !deleted.includes(id)));
        await expect(opened.store.delete(30n, deleteCall())).rejects.toThrow();
        expect(await plantsOf(target)).toContain(30n);
      },
    }, {
      fact: "stops an import into the source, which reports the move",
      plants: [1n],
      run: (opened) =>
        withImport(opened, async (running) => {
          using folder = createTempFolder();
          const target = emptyFile(folder);
          await running.add([2n]);
          await move(opened.database.location, target);
          await expect(running.add([3n])).rejects.toThrow(/it was moved to .+other\.db at .+--reopen FROM TO/);
          expect(await plantsOf(target)).toEqual([1n, 2n]);
        }),
    }, {
      fact: "lets the target's server delete plants as soon as they are moved",
      plants: [],
      run: async (opened) => {
        using folder = createTempFolder();
        const source = emptyFile(folder);
        await importInto(source, [1n, 2n]);
        await expect(opened.store.delete(1n, deleteCall())).resolves.toBe(false);
        await move(source, opened.database.location);
        await expect.poll(() => opened.store.delete(1n, deleteCall()).catch(String), { timeout: 10_000 }).toBe(true);
        expect(await opened.plants()).toEqual([2n]);
      },
    }],
  migrate: [{
      fact: "changes no plant while plants are deleted and imported",
      plants: upTo(20),
      run: (opened) => deletingDuring(opened, () => migratePlants(opened.database.location)),
    }],
  check: [{
      fact: "succeeds and changes no plant while plants are deleted and imported",
      plants: upTo(20),
      run: (opened) => deletingDuring(opened, () => checkPlantStore(opened.database.location)),
    }],
};

/** Creates a store without plants in a folder. */
function emptyFile(folder: TempFolder): PlantLocation {
  const path = folder.file("other.db");
  createMissingStore(path);
  return { kind: "sqlite", path };
}

/** Deletes and imports plants while `job` runs, and compares the plants with the outcomes. */
async function deletingDuring(opened: Opened, job: () => Promise<unknown>): Promise<void> {
  await withImport(opened, async (running) => {
    const deleting = deleteTogether(opened.store, upTo(10));
    const others = [running.add([30n]), job(), opened.store.delete(11n, deleteCall())];
    const [outcomes] = await Promise.all([deleting, ...others]);
    await job();
    expect(outcomes).not.toContain(false);
    expect(await opened.plants()).toEqual([...upTo(20).slice(11), 30n]);
  });
}

/** Describes what holds when other operations run during jobs. @param added - facts about this kind of store */
export function describeConcurrentJobs(
  open: OpenWithDatabase,
  pauses: Pauses,
  added: Readonly<Record<string, readonly Interleaving[]>> = {},
): void {
  const rows = Object.entries({ ...interleavings, ...added }).flatMap(([job, facts]) =>
    facts.map((row) => ({ job, ...row })),
  );
  describe("a job on all plants", () => {
    test.each(rows)("$job $fact", async ({ plants, run }) => {
      await using opened = await open(plants);
      await run(opened, pauses);
    });
  });
}
