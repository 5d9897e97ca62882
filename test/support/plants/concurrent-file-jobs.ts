import { expect } from "vitest";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { backUp, restore } from "../../../src/stores/index.ts";
import { deleteCall } from "./delete-call.ts";
import { type Interleaving, type Opened, withImport } from "./job-steps.ts";
import { plantsIn, recordedIn } from "./sqlite-file.ts";

/** The jobs that only a store in a file has. */
type FileJob = "backup" | "restore";

/** The facts about each job on a file. */
export const fileInterleavings: Readonly<Record<FileJob, readonly Interleaving[]>> = {
  backup: [
    {
      fact: "copies the batches and deletions before it, and none after it",
      plants: [1n, 2n, 3n],
      run: (opened) =>
        withImport(opened, async (running) => {
          using folder = createTempFolder();
          await running.add([1n, 4n]);
          await opened.store.delete(1n, deleteCall());
          const [deleting] = [opened.store.delete(2n, deleteCall()), backUp(fileOf(opened), folder.file("copy.db"))];
          await expect(deleting).resolves.toBe(true);
          await running.add([1n, 2n, 5n]);
          const copied = plantsIn(folder.file("copy.db"));
          const isIncluded = !copied.includes(2n);
          expect(copied).toEqual(isIncluded ? [3n, 4n] : [2n, 3n, 4n]);
          expect(recordedIn(folder.file("copy.db"))).toEqual(isIncluded ? [1n, 2n] : [1n]);
          expect(await opened.plants()).toEqual([3n, 4n, 5n]);
        }),
    },
  ],
  restore: [
    {
      fact: "is refused while a server or an import has the file open, so that acknowledged deletions stay",
      plants: [1n, 2n],
      run: async (opened) => {
        using folder = createTempFolder();
        const [file, copy] = [fileOf(opened), folder.file("copy.db")];
        backUp(file, copy);
        await opened.store.delete(1n, deleteCall());
        expect(() => restore(file, copy)).toThrow(/another process has the file open/);
        await withImport(opened, async (running) => {
          await opened.store.close();
          expect(() => restore(file, copy)).toThrow(/another process has the file open/);
          await expect(running.add([1n, 3n])).resolves.toEqual({ added: 1, present: 0, deleted: 1 });
        });
        expect(await opened.plants()).toEqual([2n, 3n]);
        restore(file, copy);
        expect(await opened.plants()).toEqual([1n, 2n]);
      },
    },
  ],
};

/** Returns the file of an SQLite store. */
export function fileOf({ database: { location } }: Opened): string {
  if (location.kind !== "sqlite") throw new TypeError(`the store is in ${location.kind}`);
  return location.path;
}
