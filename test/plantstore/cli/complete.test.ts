import { expect, test } from "vitest";
import { runCommand as run } from "../../support/process/run-command.ts";

test.each([
  { typed: ["s"], want: ["serve"] },
  { typed: ["to"], want: ["token"] },
  { typed: ["token", ""], want: ["create", "list", "revoke"] },
  { typed: ["help", "token", "c"], want: ["create"] },
  { typed: ["serve", "--log"], want: ["--log-level", "--log-probes"] },
  {
    typed: ["serve", "--log-level", ""],
    want: ["silent", "fatal", "error", "warn", "info", "debug", "trace"],
  },
  { typed: ["check", "--audit", "b"], want: ["by-level"] },
  { typed: ["token", "create", "ci", "--s"], want: ["--scope"] },
  // Which may be repeated, while a file is named once.
  {
    typed: ["token", "create", "ci", "--scope", "plants:delete", "--file", "tokens", "--"],
    want: ["--scope", "--expires"],
  },
  { typed: ["export", ""], want: ["--database-url"] },
  { typed: ["completion", ""], want: ["bash", "zsh", "fish"] },
  // The name of a file, which the shell knows.
  { typed: ["import", ""], want: [] },
  { typed: ["token", "list", "--file", ""], want: [] },
  { typed: ["water", ""], want: [] },
])("complete $typed offers $want", async ({ typed, want }) => {
  const { exitCode, out, err } = await run(["complete", "--", ...typed]);
  expect({ exitCode, words: out.map((line) => line.split("\t")[0]), err }).toEqual({
    exitCode: 0,
    words: want,
    err: [],
  });
});

test("complete says what each word does", async () => {
  expect((await run(["complete", "--", "back"])).out).toEqual([
    "backup\tcopy a snapshot of an SQLite store while it is being served",
  ]);
});

test("nothing typed offers every command and the help", async () => {
  const { out } = await run(["complete", "--", ""]);
  const words = ["serve", "check", "token", "import", "export", "deletions", "backup", "migrate", "openapi"];
  expect(out.map((line) => line.split("\t")[0])).toEqual([...words, "completion", "help"]);
});

test.each(["tcsh", "constructor"])("completion for another shell, %s, is wrong usage", async (shell) => {
  expect(await run(["completion", shell])).toMatchObject({ exitCode: 2, out: [] });
});
