import * as fs from "node:fs";
import { expect, test } from "vitest";
import { issueToken, type TokenRequest } from "../src/issue-token.ts";
import type { ParseResult } from "../src/inputs/text-file.ts";
import { parseTokenHashes } from "../src/token-hashes.ts";
import { digestOf } from "../src/token-verifier.ts";
import { createTempFolder } from "@protoport/testing/process";

const request: TokenRequest = { name: "ci", prefix: "garden_", scopes: "-", expiry: "-", file: undefined };

function valueOf<T>(result: ParseResult<T>): T {
  if (result.kind === "problems") throw new Error(result.problems.join("; "));
  return result.value;
}

test("issueToken creates a 256-bit token and a line with the token's hash", async () => {
  const { token, line } = valueOf(await issueToken(request));
  expect(token).toMatch(/^garden_[0-9a-z]{57}$/);
  expect(line).toBe(`sha256:${digestOf(token)} ci - -`);
});

test("issueToken creates a different token each time", async () => {
  const issued = await Promise.all(Array.from({ length: 20 }, () => issueToken(request)));
  expect(new Set(issued.map((result) => valueOf(result).token)).size).toBe(20);
});

test("issueToken creates the file with mode 0600, and no other file", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  const { line } = valueOf(await issueToken({ ...request, scopes: "a:b", expiry: "2030-01-01T00:00:00Z", file }));
  expect([fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777]).toEqual([`${line}\n`, 0o600]);
  expect(fs.readdirSync(folder.path)).toEqual(["tokens"]);
});

test.each([
  { name: "with a final line break", text: "# mine\n" },
  { name: "without a final line break", text: "# mine" },
])("a file $name keeps its lines", async ({ text }) => {
  using folder = createTempFolder();
  const file = folder.write("tokens", text);
  const { line } = valueOf(await issueToken({ ...request, file }));
  expect(fs.readFileSync(file, "utf8")).toBe(`# mine\n${line}\n`);
});

test.each([
  { mode: 0o640, want: 0o640 },
  { mode: 0o666, want: 0o644 },
])("a file with mode $mode keeps its read permissions", async ({ mode, want }) => {
  using folder = createTempFolder();
  const file = folder.write("tokens", "");
  fs.chmodSync(file, mode);
  valueOf(await issueToken({ ...request, file }));
  expect(fs.statSync(file).mode & 0o777).toBe(want);
});

// Only root can give a file to another user.
test.runIf(process.getuid?.() === 0)("a file keeps its owner and group when root adds a token", async () => {
  using folder = createTempFolder();
  const file = folder.write("tokens", "");
  fs.chownSync(file, 1_001, 1_002);
  valueOf(await issueToken({ ...request, file }));
  expect(fs.statSync(file)).toMatchObject({ uid: 1_001, gid: 1_002 });
});

test("issueToken fills a file up to exactly the maximum size", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  const { line } = valueOf(await issueToken(request));
  fs.writeFileSync(file, `#${"x".repeat(4 * 1024 * 1024 - line.length - 3)}\n`);
  expect(await issueToken({ ...request, file })).toMatchObject({ kind: "value" });
  expect(fs.statSync(file).size).toBe(4 * 1024 * 1024);
});

test("issueToken writes to a symbolic link's target", async () => {
  using folder = createTempFolder();
  fs.writeFileSync(folder.file("real"), "");
  fs.symlinkSync(folder.file("real"), folder.file("link"));
  const { line } = valueOf(await issueToken({ ...request, file: folder.file("link") }));
  expect(fs.readFileSync(folder.file("real"), "utf8")).toBe(`${line}\n`);
});

test("issueToken loses no accepted token in concurrent calls", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  const results = await Promise.all([1, 2, 3, 4].map((n) => issueToken({ ...request, name: `t${n}`, file })));
  const lines = results.flatMap((result) => (result.kind === "value" ? [result.value.line] : []));
  expect(lines.length).toBeGreaterThan(0);
  expect(fs.readFileSync(file, "utf8").trim().split("\n").toSorted()).toEqual(lines.toSorted());
  for (const result of results) {
    if (result.kind === "problems")
      expect(result.problems).toEqual([expect.stringContaining("another process is changing the tokens")]);
  }
});

test.each(
  // oxfmt-ignore
  [
    { name: "a name with a space", given: { name: "my ci" }, want: [/^the name must be/] },
    { name: "an empty scope", given: { scopes: "" }, want: [/^scope 1 is not/] },
    { name: "a scope that scopeProblem refuses", given: { scopes: "a", scopeProblem: () => "no scope" },
      want: [/no scope/] },
    { name: "a scope with a space", given: { scopes: "a b" }, want: [/^scope 1 is not/] },
    { name: "an expiry that is not a date", given: { expiry: "tomorrow" }, want: [/^the expiry must be/] },
    { name: "an invalid name, scope and expiry together", given: { name: "", scopes: ",", expiry: "" },
      want: [/name/, /scope 1, 2/, /expiry/] },
  ],
)("issueToken rejects $name and creates no file", async ({ given, want }) => {
  using folder = createTempFolder();
  const result = await issueToken({ ...request, ...given, file: folder.file("tokens") });
  expect(result).toEqual({ kind: "problems", problems: want.map((pattern) => expect.stringMatching(pattern)) });
  expect(fs.readdirSync(folder.path)).toEqual([]);
});

test.each([
  ["with a token of this name", `sha256:${"a".repeat(64)} ci - -\n`, /^line 2: the name already appears on line 1$/],
  ["with an invalid line", "nonsense\n", /^line 1: a line must have 4 columns .*, got 1$/],
  ["without room for the token", `#${"x".repeat(2 ** 22 - 10)}\n`, /would be larger than the limit of 4194304 bytes$/],
  ["that is not UTF-8", Buffer.alloc(100, 0xff), /^line 1: /],
])("issueToken leaves a file %s unchanged", async (_name, text, want) => {
  using folder = createTempFolder();
  const file = folder.write("tokens", text);
  expect(await issueToken({ ...request, file })).toEqual({ kind: "problems", problems: [expect.stringMatching(want)] });
  expect([fs.readFileSync(file).equals(Buffer.from(text)), fs.readdirSync(folder.path)]).toEqual([true, ["tokens"]]);
});

test("issueToken rejects a path to a directory or in a missing directory", async () => {
  using folder = createTempFolder();
  fs.mkdirSync(folder.file("sub"));
  const inFolder = await issueToken({ ...request, file: folder.file("sub") });
  expect(inFolder).toEqual({ kind: "problems", problems: [expect.stringContaining("is not a regular file")] });
  const nowhere = await issueToken({ ...request, file: folder.file("none/tokens") });
  expect(nowhere).toEqual({ kind: "problems", problems: [expect.stringContaining("does not exist")] });
  expect(fs.readdirSync(folder.path)).toEqual(["sub"]);
});

test("issueToken returns a line that parseTokenHashes accepts", async () => {
  const given = { name: "a@b/c:d", scopes: "x,y", expiry: "2030-01-01T00:00:00+01:00" };
  const { line } = valueOf(await issueToken({ ...request, ...given }));
  expect(parseTokenHashes(line).kind).toBe("value");
});
