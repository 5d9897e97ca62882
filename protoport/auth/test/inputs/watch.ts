import { writeFileSync } from "node:fs";
import { expect } from "vitest";
import { withProblems, parsed } from "../../src/inputs/text-file.ts";
import { type FileToWatch, type WatchedFile, watchFile } from "../../src/inputs/watched-file.ts";
import { type TempFolder, within } from "@protoport/testing";

/** A watched file, and what was applied and logged. */
export interface Watching extends WatchedFile, Disposable {
  /** The contents that were applied, oldest first. */
  readonly applied: readonly string[];
  /** The log's messages, oldest first. */
  readonly messages: readonly string[];
  /** Resolves once a content that includes this text was applied. */
  hasApplied(part: string): Promise<void>;
}

/** Watches a file. Content that includes "bad" is rejected. */
export async function watch(path: string, changes: Partial<FileToWatch> = {}): Promise<Watching> {
  const applied: string[] = [];
  const messages: string[] = [];
  const listeners: (() => void)[] = [];
  const record = (fields: object, message: string): void => {
    expect(fields).toMatchObject({ path });
    messages.push(message);
  };
  const log = { info: record, warn: record };
  const apply = (text: string): ReturnType<FileToWatch["apply"]> => {
    if (text.includes("bad")) return withProblems("it is bad");
    applied.push(text);
    for (const listener of listeners) listener();
    return parsed({});
  };
  const opened = await watchFile({ paths: [path], what: "file", limitBytes: 1_000_000, apply, log, ...changes });
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const hasApplied = (part: string): Promise<void> =>
    new Promise((resolve) => {
      const listener = (): void => {
        if (applied.some((text) => text.includes(part))) resolve();
      };
      listeners.push(listener);
      listener();
    });
  const close = (): void => opened.value.close();
  const reload = (): Promise<void> => opened.value.reload();
  const appliedInTime = (part: string) => within(hasApplied(part), part);
  const watching = { applied, messages, reload, close, hasApplied: appliedInTime, [Symbol.dispose]: close };
  return Object.assign(Object.create(opened.value), watching);
}

export function fileOf(folder: TempFolder, text: string): string {
  writeFileSync(folder.file("file"), text);
  return folder.file("file");
}

/** What is logged for a file named "file". */
export const logged = {
  reverted: "file reverted to the content in use",
  rejected: "file not reloaded, keeping the previous one",
  reloaded: "file reloaded",
} as const;
