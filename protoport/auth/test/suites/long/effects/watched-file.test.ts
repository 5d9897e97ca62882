import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { withProblems, parsed } from "../../../../src/inputs/text-file.ts";
import { type FileToWatch, watchFile } from "../../../../src/inputs/watched-file.ts";

// Watches a file with two values for each option, and compares what is applied and logged.

/** What a watched file has done. */
type Observed = { readonly applied: readonly string[]; readonly messages: readonly string[] };

/** Watches a file that is changed, and then reloaded twice with content that is rejected. */
async function observe(changes: (folder: { file(name: string): string }) => Partial<FileToWatch>): Promise<Observed> {
  using folder = createTempFolder();
  const paths = ["one", "two"].map((name) => folder.file(name));
  for (const path of paths) writeFileSync(path, "first");
  const applied: string[] = [];
  const messages: string[] = [];
  const record = (_fields: object, message: string): void => void messages.push(message);
  const apply: FileToWatch["apply"] = (...texts) => {
    applied.push(texts.join("+"));
    return texts.includes("bad") ? withProblems("it is bad") : parsed({});
  };
  const file = { paths: paths.slice(0, 1), what: "file", limitBytes: 100, apply, log: { info: record, warn: record } };
  const watched = await watchFile({ ...file, ...changes(folder) });
  if (watched.kind === "problems") return { applied: [], messages: ["refused"] };
  for (const content of ["second", "bad", "bad"]) {
    writeFileSync(paths[0] ?? "", content);
    await watched.value.reload();
  }
  watched.value.close();
  return { applied, messages };
}

/** Compares the default with another value. */
function compare(changes: (folder: { file(name: string): string }) => Partial<FileToWatch>): Promise<Differs> {
  return compareValues(() => ({}), changes, observe);
}

const effects: EffectsOf<FileToWatch> = {
  paths: () => compare((folder) => ({ paths: [folder.file("one"), folder.file("two")] })),
  what: () => compare(() => ({ what: "other file" })),
  limitBytes: () => compare(() => ({ limitBytes: 5 })),
  apply: () => compare(() => ({ apply: () => parsed({}) })),
  log: () => compare(() => ({ log: { info: () => undefined, warn: () => undefined } })),
  // Does not call reload(), which tries rejected content immediately.
  retryRejectedMs: () => compareValues(60_000, 1, keepsTrying),
  repeatRejectionMs: () => compare(() => ({ repeatRejectionMs: 0 })),
};

/** Returns whether rejected content is still tried after six seconds. */
async function keepsTrying(retryRejectedMs: number): Promise<boolean> {
  using folder = createTempFolder();
  const path = folder.file("one");
  writeFileSync(path, "first");
  const tries: string[] = [];
  const apply: FileToWatch["apply"] = (text) => {
    if (text !== "bad") return parsed({});
    tries.push(text);
    return withProblems("it is bad");
  };
  const log = { info: () => undefined, warn: () => undefined };
  const watched = await watchFile({ paths: [path], what: "file", limitBytes: 100, apply, log, retryRejectedMs });
  if (watched.kind === "problems") throw new Error("refused");
  writeFileSync(path, "bad");
  // Soon after a write, the file is read again with any value for the option.
  let windows = 0;
  do {
    tries.length = 0;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  } while (++windows < 4 && tries.length > 0);
  watched.value.close();
  return tries.length > 0;
}

test.each(Object.entries(effects))("the option %s of watchFile has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
