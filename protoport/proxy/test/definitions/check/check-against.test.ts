import { expect, test } from "vitest";
import { checkCommand } from "../../../src/definitions/index.ts";
import { descriptorSetOf, restrictedGreenhouse } from "@protoport/testing/proxy";
import { createTempFolder } from "../../../../testing/src/process/temp-folder.ts";

test("--visibility also hides elements of the older definition", async () => {
  using folder = createTempFolder();
  const set = folder.write("greenhouse.binpb", descriptorSetOf(restrictedGreenhouse()));
  const lines: string[] = [];
  const output = { out: (text: string) => void lines.push(text), err: (text: string) => void lines.push(text) };
  const exitCode = await checkCommand.run({ against: set, visibility: ["PARTNER"] }, [set], output);
  expect([exitCode, lines.at(-1)]).toEqual([
    0,
    expect.stringMatching(/\n0 changes break clients, 0 may; 0 accepted\.$/),
  ]);
});
