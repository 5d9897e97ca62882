import { EventEmitter, once } from "node:events";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { OperatorLog } from "../src/inputs/reload-record.ts";
import { openTokenHashes } from "../src/open-token-verifier.ts";
import { digestOf, type TokenVerifier } from "../src/token-verifier.ts";
import { createTempFolder, within } from "@protoport/testing";

const quiet: OperatorLog = { info: () => {}, warn: () => {} };
const line = (token: string): string => `sha256:${digestOf(token)} ${token} - -\n`;

function accepts(verifier: TokenVerifier, token: string): boolean {
  const outcome = verifier.verify({ text: token, digest: digestOf(token) });
  return !(outcome instanceof Promise) && outcome.kind === "principal";
}

/** Returns a log, and a function that resolves to its next line at a level. */
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

// Concurrent, because these tests mostly wait for the next check.
test.concurrent("openTokenHashes reloads a file that is replaced by a rename", async () => {
  using folder = createTempFolder();
  const path = folder.write("tokens", line("alpha"));
  const { log, next } = loggedLines();
  using verifier = await opened(path, log);
  expect([accepts(verifier, "alpha"), accepts(verifier, "gamma")]).toEqual([true, false]);
  const reloaded = next("info");
  // The content keeps its length, so that the size does not show the change.
  writeFileSync(`${path}.new`, line("gamma"));
  renameSync(`${path}.new`, path);
  expect(await reloaded).toEqual({ path, tokens: 1, message: "file of token hashes reloaded" });
  expect([accepts(verifier, "alpha"), accepts(verifier, "gamma")]).toEqual([false, true]);
});

const addLine = (path: string): void => writeFileSync(path, `${line("gamma")}oops\n`);

test.concurrent.each([
  { name: "gets an invalid line", spoil: addLine, want: /^line 2: a line must have 4 columns .*, got 1$/ },
  { name: "is deleted", spoil: (path: string) => rmSync(path), want: /does not exist$/ },
])("openTokenHashes keeps the previous tokens if the file $name later", async ({ spoil, want }) => {
  using folder = createTempFolder();
  const path = folder.write("tokens", line("alpha"));
  const { log, next } = loggedLines();
  using verifier = await opened(path, log);
  const warning = next("warn");
  spoil(path);
  const message = "file of token hashes not reloaded, keeping the previous one";
  const problems = [expect.stringMatching(want)];
  expect(await warning).toEqual({ errorCode: "ERR_FILE_REFUSED", path, problems, message });
  expect(accepts(verifier, "alpha")).toBe(true);
});

test.concurrent("openTokenHashes refuses every token and logs a warning when the file becomes empty", async () => {
  using folder = createTempFolder();
  const path = folder.write("tokens", line("alpha"));
  const { log, next } = loggedLines();
  using verifier = await opened(path, log);
  const warning = next("warn");
  writeFileSync(path, "");
  expect(await warning).toEqual({ path, message: "file of token hashes is empty; none of its tokens is accepted" });
  expect(accepts(verifier, "alpha")).toBe(false);
});

test.each(
  // oxfmt-ignore
  [
    { name: "does not exist", make: () => {}, want: /does not exist$/ },
    { name: "has invalid lines", make: (path: string) => writeFileSync(path, "a\nb\n"), want: /tokens: line 1: / },
    { name: "is larger than the limit",
      make: (path: string) => writeFileSync(path, Buffer.alloc(4 * 1024 * 1024 + 1)),
      want: /is larger than 4194304 bytes$/ },
    { name: "has a scope that scopeProblem refuses",
      make: (path: string) => writeFileSync(path, `sha256:${digestOf("a")} a orders -`),
      options: { scopeProblem: () => "no scope" }, want: /tokens: line 1: no scope$/ },
  ],
)("openTokenHashes returns a problem if the file $name at the start", async ({ make, options = {}, want }) => {
  using folder = createTempFolder();
  const path = folder.file("tokens");
  make(path);
  const result = await openTokenHashes(path, options, quiet);
  expect(result.kind === "problems" ? result.problems[0] : "opened").toMatch(want);
});

test("openTokenHashes opens a file as large as the limit", async () => {
  using folder = createTempFolder();
  const path = folder.write("tokens", Buffer.alloc(4 * 1024 * 1024, "#"));
  using verifier = await opened(path);
  expect(accepts(verifier, "alpha")).toBe(false);
});

test("openTokenHashes does not open a device", async () => {
  const result = await openTokenHashes("/dev/zero", {}, quiet);
  expect(result).toEqual({ kind: "problems", problems: ["/dev/zero is not a regular file"] });
});
