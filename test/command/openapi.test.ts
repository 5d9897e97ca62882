import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createPlantStoreOpenApi } from "../../src/server/index.ts";
import { projectFolder } from "@protoport/testing/process";
import { runCommand } from "../support/process/run-command.ts";

test.each([undefined, ""])("openapi prints openapi.json if PLANTSTORE_PUBLIC_URL is %j", async (publicUrl) => {
  const committed = readFileSync(`${projectFolder}/openapi.json`, "utf8");
  const environment = publicUrl === undefined ? {} : { PLANTSTORE_PUBLIC_URL: publicUrl };
  const { exitCode, out } = await runCommand(["openapi"], environment);
  expect({ exitCode, out: `${out.join("\n")}\n` }).toEqual({ exitCode: 0, out: committed });
});

test.each([
  { name: "--public-url", words: ["--public-url", "https://plants.example/api/"], environment: {} },
  { name: "PLANTSTORE_PUBLIC_URL", words: [], environment: { PLANTSTORE_PUBLIC_URL: "https://plants.example/api" } },
  {
    name: "--public-url instead of PLANTSTORE_PUBLIC_URL",
    words: ["--public-url", "https://plants.example/api"],
    environment: { PLANTSTORE_PUBLIC_URL: "https://other.example" },
  },
])("openapi prints the URL in $name as the server", async ({ words, environment }) => {
  const { exitCode, out } = await runCommand(["openapi", ...words], environment);
  expect(exitCode).toBe(0);
  expect(JSON.parse(out.join("\n"))).toEqual(createPlantStoreOpenApi("https://plants.example/api"));
});

test("openapi refuses an invalid base URL as a usage error", async () => {
  const { exitCode, out, err } = await runCommand(["openapi", "--public-url", "plants.example"]);
  expect({ exitCode, out }).toEqual({ exitCode: 2, out: [] });
  expect(err[0]).toContain("--public-url must be an http or https URL");
});
