import { EventEmitter, once } from "node:events";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import type { OperatorLog } from "../src/inputs/operator-log.ts";
import { openTokenHashes } from "../src/open-token-hashes.ts";
import { digestOf, type TokenVerifier } from "../src/token-verifier.ts";
import { within } from "../../testing/src/deadline.ts";
import { createTempFolder } from "../../testing/src/process/temp-folder.ts";

const quiet: OperatorLog = { info: () => {}, warn: () => {} };

function line(token: string): string {
  return `sha256:${digestOf(token)} ${token} - -\n`;
}

function knows(verifier: TokenVerifier, token: string): boolean {
  const outcome = verifier.verify({ text: token, digest: digestOf(token) });
  return !(outcome instanceof Promise) && outcome.kind === "principal";
}

/** A log whose next line of a level can be waited for. */
function loggedLines(): { readonly log: OperatorLog; readonly next: (level: "info" | "warn") => Promise<unknown> } {
  const lines = new EventEmitter();
  return {
    log: {
      info: (fields, message) => void lines.emit("info", { ...fields, message }),
      warn: (fields, message) => void lines.emit("warn", { ...fields, message }),
    },
    next: async (level) => {
      const [logged]: unknown[] = await within(once(lines, level), `a line at ${level}`);
      return logged;
    },
  };
}

async function opened(path: string, log: OperatorLog = quiet): Promise<TokenVerifier & Disposable> {
  const result = await openTokenHashes(path, {}, log);
  if (result.kind === "problems") throw new Error(result.problems.join("; "));
  return { ...result.value, [Symbol.dispose]: () => result.value.close?.() };
}

describe("openTokenHashes", () => {
  // Side by side, here and below: what takes its time is that the file is looked at now and then.
  test.concurrent("follows a file that is replaced by a rename", async () => {
    using folder = createTempFolder();
    const path = folder.file("tokens");
    writeFileSync(path, line("alpha"));
    const { log, next } = loggedLines();
    using verifier = await opened(path, log);
    expect([knows(verifier, "alpha"), knows(verifier, "gamma")]).toEqual([true, false]);
    const reloaded = next("info");
    // Of the same length as before: the size does not give the change away.
    writeFileSync(`${path}.new`, line("gamma"));
    renameSync(`${path}.new`, path);
    expect(await reloaded).toEqual({ path, tokens: 1, message: "file of token hashes reloaded" });
    expect([knows(verifier, "alpha"), knows(verifier, "gamma")]).toEqual([false, true]);
  });

  test.concurrent.each([
    {
      name: "has a bad line",
      spoil: (path: string) => writeFileSync(path, `${line("gamma")}oops\n`),
      want: /^line 2: a line must have 4 columns .*, got 1$/,
    },
    { name: "is gone", spoil: (path: string) => rmSync(path), want: /does not exist$/ },
  ])("keeps the old set, and says why, when the file $name", async ({ spoil, want }) => {
    using folder = createTempFolder();
    const path = folder.file("tokens");
    writeFileSync(path, line("alpha"));
    const { log, next } = loggedLines();
    using verifier = await opened(path, log);
    const refused = next("warn");
    spoil(path);
    expect(await refused).toEqual({
      errorCode: "ERR_FILE_REFUSED",
      path,
      problems: [expect.stringMatching(want)],
      message: "file of token hashes not reloaded, keeping the previous one",
    });
    expect(knows(verifier, "alpha")).toBe(true);
  });

  test.each([
    { name: "is not there", make: () => {}, want: /does not exist$/ },
    { name: "has bad lines", make: (path: string) => writeFileSync(path, "a\nb\n"), want: /tokens: line 1: / },
    {
      name: "is larger than the limit",
      make: (path: string) => writeFileSync(path, Buffer.alloc(4 * 1024 * 1024 + 1)),
      want: /is larger than 4194304 bytes$/,
    },
  ])("does not open a file that $name", async ({ make, want }) => {
    using folder = createTempFolder();
    const path = folder.file("tokens");
    make(path);
    const result = await openTokenHashes(path, {}, quiet);
    expect(result.kind === "problems" ? result.problems[0] : "opened").toMatch(want);
  });

  test("opens a file as large as the limit", async () => {
    using folder = createTempFolder();
    const path = folder.file("tokens");
    writeFileSync(path, Buffer.alloc(4 * 1024 * 1024, "#"));
    using verifier = await opened(path);
    expect(knows(verifier, "alpha")).toBe(false);
  });

  test("does not open a device", async () => {
    const result = await openTokenHashes("/dev/zero", {}, quiet);
    expect(result).toEqual({ kind: "problems", problems: ["/dev/zero is not a regular file"] });
  });
});
