import { create, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { descriptorSetOf, OrderService } from "@protoport/testing/proxy";
import { parseDefinition } from "../../src/definitions/definition.ts";
import { writeReport } from "../../src/definitions/report.ts";

test("parseDefinition accepts a descriptor set with the second byte of gzip", () => {
  const first = toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: [{ name: "a".repeat(136) }] }),
  );
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
