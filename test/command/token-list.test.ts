import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createTempFolder } from "@protoport/testing/process";
import { runCommand as run } from "../support/process/run-command.ts";

test("token list prints all tokens, and token revoke removes only one", async () => {
  using folder = createTempFolder();
  const file = folder.file("tokens");
  writeFileSync(file, "# old tokens stay until they are revoked\n");
  const environment = { PLANTSTORE_TOKEN_HASHES_FILE: file };
  for (const words of [
    ["ci"],
    ["old", "--expires", "2020-01-01T00:00:00Z"],
    ["new", "--expires", "2999-01-01T00:00:00Z"],
    ["one", "--scope", "plants:delete"],
  ])
    await run(["token", "create", ...words], environment);
  expect(await run(["token", "list"], environment)).toEqual({
    exitCode: 0,
    out: [
      "ci - -",
      "old - 2020-01-01T00:00:00.000Z (expired)",
      "new - 2999-01-01T00:00:00.000Z",
      "one plants:delete -",
    ],
    err: [],
  });
  expect((await run(["token", "list", "--json"], environment)).out.map((line) => JSON.parse(line))).toEqual([
    { name: "ci", scopes: "all", expiresAt: null },
    { name: "old", scopes: "all", expiresAt: "2020-01-01T00:00:00.000Z" },
    { name: "new", scopes: "all", expiresAt: "2999-01-01T00:00:00.000Z" },
    { name: "one", scopes: ["plants:delete"], expiresAt: null },
  ]);
  const before = readFileSync(file, "utf8");
  const want = { exitCode: 0, out: [], err: [`removed old from ${file}`] };
  expect(await run(["token", "revoke", "old"], environment)).toEqual(want);
  expect(readFileSync(file, "utf8")).toBe(before.replace(/^sha256:\S+ old .*\n/m, ""));
});
