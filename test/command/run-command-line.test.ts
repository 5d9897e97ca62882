import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { exitCode as exitCodes } from "../../src/command/command.ts";
import { settingGroups } from "../../src/server/index.ts";
import { runCommand as run } from "../support/process/run-command.ts";
import { createTempFolder } from "@protoport/testing/process";

const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
const { version }: { version: string } = JSON.parse(manifest);

test.each(["--version", "-v"])("%s prints the package's version and nothing else", async (flag) => {
  expect(await run([flag])).toEqual({ exitCode: 0, out: [version], err: [] });
});

test.each([["--help"], ["-h"], ["help"]])("%s lists the commands", async (...words) => {
  const { exitCode, out } = await run(words);
  expect(exitCode).toBe(0);
  expect(out.join("\n")).toMatch(/ serve .*\n.* check .*\n.* token create .*\n.* token list /);
});

test.each([
  ["help", "token", "create"],
  ["token", "create", "-h"],
])("%s %s %s shows the command's help", async (...words) => {
  expect(await run(words)).toEqual(await run(["token", "create", "--help"]));
  expect((await run(words)).out[0]).toMatch(/^plantstore token create NAME \[--scope SCOPE\]\.\.\. /);
});

test("serve --help lists its flags, and every setting under its group's title", async () => {
  const { exitCode, out } = await run(["serve", "--help"]);
  expect(out[0]).toBe("plantstore serve [--demo] [--print-config] [--SETTING VALUE]...");
  const shown = out.flatMap(
    (line) => /^([A-Z].*):$/.exec(line)?.[1] ?? /^ {2}.*?([A-Z][A-Z0-9_]+)$/.exec(line)?.[1] ?? [],
  );
  const want = settingGroups.flatMap((group) => [group.title, ...group.settings.map(({ variable }) => variable)]);
  expect([exitCode, shown.filter((text) => !text.startsWith("Settings,"))]).toEqual([0, want]);
});

test.each(
  // oxfmt-ignore
  [
    ["a missing command", [], "a command is missing"],
    ["an unknown command", ["water"], 'unknown command "water"'],
    ["the first word of a command", ["token"],
      'unknown command "token", did you mean "token create" or "token list" or "token revoke"?'],
    ["a misspelt command", ["serv", "--demo"], 'unknown command "serv --demo", did you mean "serve"?'],
    ["a misspelt command of two words", ["token", "lst"], 'did you mean "token list"?'],
    ["a misspelt command with an operand", ["token", "lst", "a-file-of-hashes"], 'did you mean "token list"?'],
    ["help for an unknown command", ["help", "water"], 'unknown command "water"'],
    ["an unknown flag", ["serve", "--watering"], 'unknown flag "--watering" of "serve"'],
    ["a misspelt flag", ["serve", "--databse-url=memory:"],
      'unknown flag "--databse-url" of "serve", did you mean "--database-url"?'],
    ["a flag with an extra first letter", ["serve", "--xport=1"],
      'unknown flag "--xport" of "serve", did you mean "--port"?'],
    ["a flag with swapped letters", ["serve", "--prot=1"], 'unknown flag "--prot" of "serve", did you mean "--port"?'],
    ["an unknown short flag", ["serve", "-x"], 'unknown flag "-x" of "serve"'],
    ["a flag without its value", ["serve", "--port"], "--port"],
    ["an extra operand", ["serve", "now"], "usage: plantstore serve"],
    ["a demo with another store", ["serve", "--demo", "--database-url", "memory:"],
      "--demo cannot be combined with --database-url"],
    ["token revoke without a name", ["token", "revoke"], "usage: plantstore token revoke NAME"],
    ["a token expiry without a unit", ["token", "create", "ci", "--expires", "90"], "the expiry must be"],
    ["token create without a name", ["token", "create"], "usage: plantstore token create NAME"],
    ["a token name with a space", ["token", "create", "my token"], "the name must be"],
    ["a token expiry on a date that does not exist", ["token", "create", "ci", "--expires", "2030-02-30T00:00:00Z"],
      "the expiry must be"],
    ["records since a day that does not exist", ["deletions", "--since", "2030-02-31"], "--since must be a duration"],
    ["a misspelt token scope", ["token", "create", "ci", "--scope", "plants:delet"],
      'unknown scope "plants:delet", did you mean "plants:delete"?'],
    ["an unknown token scope", ["token", "create", "ci", "--scope", "read"],
      'unknown scope "read"; scopes are plants:delete'],
  ],
)("the command line refuses %s with exit code 2", async (_, words, want) => {
  const { exitCode, out, err } = await run(words);
  expect({ exitCode, out, lines: err.length }).toEqual({ exitCode: 2, out: [], lines: 2 });
  expect(err[0]).toContain(want);
  expect(err[1]).toMatch(/^Try 'plantstore(?: [a-z]+)* --help'\.$/);
});

test("serve reports all configuration problems and exits with 78", async () => {
  const { exitCode, out, err } = await run(["serve"], { PORT: "x", LOG_LEVEL: "y" });
  expect({ exitCode, out, problems: err.length - 1 }).toEqual({ exitCode: 78, out: [], problems: 3 });
});

const silent = { PLANTSTORE_TOKENS: "sixteen-characters", LOG_LEVEL: "silent" };

describe("serve", () => {
  const cannotListen = "plantstore: cannot listen on HOST: ";
  test.each(
    // oxfmt-ignore
    [
      ["a regular file as the socket path", "text",
        (file: string): unknown => `${cannotListen}${file} is in use, or is not a socket`],
      ["a socket path in a missing directory", "none/s",
        (file: string) => `${cannotListen}the directory of ${file} does not exist, or this user may not write to it`],
      ["a socket path below a file", "text/s",
        () => expect.stringMatching(`^${cannotListen}.*ENOTDIR: not a directory`)],
    ],
  )("refuses %s with the reason", async (_name, path, want) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("text"), "mine");
    const file = folder.file(path);
    const { exitCode, err } = await run(["serve", "--database-url", "memory:", "--host", `unix:${file}`], silent);
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: [want(file)] });
  });
});

test("token create prints the token to stdout, and its line to stderr", async () => {
  // oxfmt-ignore
  const { exitCode, out, err } = await run([
    "token", "create", "ci", "--scope", "plants:delete", "--expires", "2030-01-31T12:00:00Z",
  ], { PLANTSTORE_TOKEN_HASHES_FILE: "" });
  const [token = ""] = out;
  const hash = createHash("sha256").update(token).digest("hex");
  expect({ exitCode, out, err }).toEqual({
    exitCode: 0,
    out: [expect.stringMatching(/^plantstore_[0-9a-z]{57}$/)],
    err: [`add this line to a file of token hashes: sha256:${hash} ci plants:delete 2030-01-31T12:00:00.000Z`],
  });
});

test.each([
  { name: "the flag's file", words: ["--file"] },
  { name: "the variable's file", words: [] },
])("token create stores only the hash, in $name, with mode 0600", async ({ words }) => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  const flags = words.flatMap((flag) => [flag, file]);
  const environment = { PLANTSTORE_TOKEN_HASHES_FILE: words.length === 0 ? file : folder.file("other") };
  const { exitCode, out } = await run(["token", "create", "ci", ...flags], environment);
  const [token = ""] = out;
  const kept = readFileSync(file, "utf8");
  const hash = createHash("sha256").update(token).digest("hex");
  expect([exitCode, kept, statSync(file).mode & 0o777]).toEqual([0, `sha256:${hash} ci - -\n`, 0o600]);
  expect(kept).not.toContain(token);
});

test("token create refuses a name that is already in the file", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  await run(["token", "create", "ci", "--file", file]);
  const before = readFileSync(file, "utf8");
  const { exitCode, out } = await run(["token", "create", "ci", "--file", file]);
  expect({ exitCode, out, kept: readFileSync(file, "utf8") }).toEqual({ exitCode: 1, out: [], kept: before });
});

test("serve --print-config prints effective values with their sources, and no secrets", async () => {
  const { exitCode, out } = await run(["serve", "--print-config", "--port", "9000"], {
    DATABASE_URL: "postgres://gardener:rake@db.example:5432/plants?password=rake",
    PLANTSTORE_TOKENS: "sixteen-characters",
    PLANTSTORE_JWT_ISSUERS: "https://user:rake@issuer.example,b",
    PLANTSTORE_JWT_KEYS_URLS: "https://a.example/?key=rake,https://b.example/?key=rake",
    PLANTSTORE_JWT_AUDIENCES: "plants",
  });
  const rows = out.map((line) => line.split(/ {2,}/));
  expect({ exitCode, rows }).toEqual({
    exitCode: 0,
    // oxfmt-ignore
    rows: expect.arrayContaining([
      ["HOST", "127.0.0.1", "(default)"], ["PORT", "9000", "(--port)"],
      ["DATABASE_URL", "postgres://db.example:5432/plants"], ["PLANTSTORE_TOKENS", "(hidden)"],
      ["PLANTSTORE_JWT_ISSUERS", "https://…@issuer.example,b"], ["PLANTSTORE_PUBLIC_URL", "-", "(default)"],
    ]),
  });
  expect(out.join("\n")).not.toMatch(/rake|sixteen/);
});

test("serve --print-config refuses an invalid configuration", async () => {
  const invalid = { DATABASE_URL: "memory:", PORT: "x" };
  expect(await run(["serve", "--print-config"], invalid)).toMatchObject({ exitCode: 78, out: [] });
});

test("token create --expires counts a duration from now", async () => {
  const beforeMs = Date.now();
  const { err } = await run(["token", "create", "ci", "--expires", "90d"]);
  const expiryMs = Date.parse(err[0]?.split(" ").at(-1) ?? "");
  const ninetyDaysMs = 90 * 24 * 3_600_000;
  // The expiry is rounded down to a second.
  expect(expiryMs % 1_000).toBe(0);
  expect(expiryMs).toBeGreaterThan(beforeMs + ninetyDaysMs - 1_001);
  expect(expiryMs).toBeLessThanOrEqual(Date.now() + ninetyDaysMs);
});

test("token revoke with an unknown name fails without changing the file", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  await run(["token", "create", "ci", "--file", file]);
  const before = readFileSync(file, "utf8");
  const err = [`plantstore: ${file}: no token is named c`];
  expect(await run(["token", "revoke", "c", "--file", file])).toEqual({ exitCode: 1, out: [], err });
  expect(readFileSync(file, "utf8")).toBe(before);
});

test.each(["list", "revoke ci"])("token %s without a file reports the flag and variable to set", async (words) => {
  const { exitCode, err } = await run(["token", ...words.split(" ")]);
  const problem = "  the file is missing; set --file or PLANTSTORE_TOKEN_HASHES_FILE";
  expect({ exitCode, err: err.at(-1) }).toEqual({ exitCode: 78, err: problem });
});

test.each(["create ci", "list", "revoke ci"])(
  "token %s reports that the file's folder does not exist",
  async (words) => {
    using folder = createTempFolder();
    const file = folder.file("none/tokens");
    const { exitCode, out, err } = await run(["token", ...words.split(" "), "--file", file]);
    const problem = expect.stringMatching(/: .*none\/tokens(\.lock)? or its parent directory does not exist$/);
    expect({ exitCode, out, err }).toEqual({ exitCode: 1, out: [], err: [problem] });
  },
);

test.each([
  { name: "a missing file", file: "absent.txt", want: /absent\.txt or its parent directory does not exist/ },
  { name: "a directory", file: "", want: /cannot read .*: it is a directory$/ },
  { name: "a file with a byte order mark", file: "bom.txt", want: /line 1 starts with a byte order mark/ },
])("import reports $name, and fails", async ({ file, want }) => {
  using folder = createTempFolder();
  writeFileSync(folder.file("bom.txt"), "\uFEFF1\n");
  const environment = { DATABASE_URL: `sqlite:${folder.file("plants.db")}` };
  await run(["migrate"], environment);
  const { exitCode, err } = await run(["import", folder.file(file)], environment);
  expect({ exitCode, err: err[0] }).toEqual({ exitCode: 1, err: expect.stringMatching(want) });
});

test("docs/reference/configuration.md lists every exit code", () => {
  const page = readFileSync(new URL("../../docs/reference/configuration.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("## Exit codes");
  const listed = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(listed).toEqual(Object.values(exitCodes).toSorted((a, b) => a - b));
});
