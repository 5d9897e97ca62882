import { expect, test } from "vitest";
import { descriptorSetOf, OrderService, restrictedGreenhouse } from "@protoport/testing/proxy";
import { parseDefinition } from "../../src/definitions/definition.ts";
import { writeReport } from "../../src/definitions/report.ts";
import { checkCommand } from "../../src/definitions/index.ts";
import { createTempFolder } from "@protoport/testing/process";
import { setOfFiles } from "../support/set-of-files.ts";

test("parseDefinition accepts a descriptor set with the second byte of gzip", () => {
  const first = setOfFiles({ name: "a".repeat(136) });
  expect(first[1]).toBe(0x8b);
  const set = Buffer.concat([first, descriptorSetOf(OrderService.file)]);
  expect(parseDefinition("set.binpb", set).services.map(({ typeName }) => typeName)).toEqual([OrderService.typeName]);
});

test("writeReport only lists the problems if the gateway would not start", () => {
  const definition = parseDefinition("set.binpb", descriptorSetOf(OrderService.file));
  const result = { bindings: [], problems: ["rule 1", "rule 2"], unsupportedOptions: new Map(), tools: undefined };
  // oxfmt-ignore
  expect(writeReport(definition, result).split("\n")).toEqual(["set.binpb: 1 service, 1 RPC", "",
    "The gateway would not start, for 2 reasons:", "", "  rule 1", "  rule 2", "",
    "rest.rules overrides a rule that you cannot change, and rest.omit excludes an RPC from REST."]);
});

test("--visibility also hides elements of the older definition", async () => {
  using folder = createTempFolder();
  const set = folder.write("greenhouse.binpb", descriptorSetOf(restrictedGreenhouse()));
  const lines: string[] = [];
  const output = { out: (text: string) => void lines.push(text), err: (text: string) => void lines.push(text) };
  const exitCode = await checkCommand.run({ against: set, visibility: ["PARTNER"] }, [set], output);
  const unchanged = /\n0 changes break clients, 0 may; 0 accepted\.$/;
  expect([exitCode, lines.at(-1)]).toEqual([0, expect.stringMatching(unchanged)]);
});
