import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/run-command-line.ts";
import { describePlantStore } from "../../src/server/index.ts";
import { projectFolder } from "../support/child-program.ts";

async function run(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ exitCode: number; out: string; err: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = {
    environment,
    out: (line: string): void => void out.push(line),
    err: (line: string): void => void err.push(line),
  };
  const exitCode = await runCommandLine(words, terminal);
  return { exitCode, out: out.join("\n"), err: err.join("\n") };
}

test("openapi prints openapi.json to the letter", async () => {
  const committed = readFileSync(`${projectFolder}/openapi.json`, "utf8");
  const { exitCode, out } = await run(["openapi"]);
  expect({ exitCode, out: `${out}\n` }).toEqual({ exitCode: 0, out: committed });
});

test.each([
  { name: "the flag", words: ["--public-url", "https://plants.example/api/"], environment: {} },
  { name: "the variable", words: [], environment: { PLANTSTORE_PUBLIC_URL: "https://plants.example/api" } },
  {
    name: "the flag before the variable",
    words: ["--public-url", "https://plants.example/api"],
    environment: { PLANTSTORE_PUBLIC_URL: "https://other.example" },
  },
])("openapi names the base URL of $name", async ({ words, environment }) => {
  const { exitCode, out } = await run(["openapi", ...words], environment);
  expect(exitCode).toBe(0);
  expect(JSON.parse(out)).toEqual(describePlantStore("https://plants.example/api"));
});

test("a base URL that is none is wrong usage", async () => {
  const { exitCode, out, err } = await run(["openapi", "--public-url", "plants.example"]);
  expect({ exitCode, out, err }).toEqual({
    exitCode: 2,
    out: "",
    err: expect.stringContaining("an http or https URL"),
  });
});
