import { create, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { descriptorSetOf, OrderService } from "@protoport/testing/proxy";
import { parseDefinition } from "../../src/definitions/definition.ts";

test("parseDefinition accepts a descriptor set with the second byte of gzip", () => {
  const first = toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: [{ name: "a".repeat(136) }] }),
  );
  expect(first[1]).toBe(0x8b);
  const set = Buffer.concat([first, descriptorSetOf(OrderService.file)]);
  expect(parseDefinition("set.binpb", set).services.map(({ typeName }) => typeName)).toEqual([OrderService.typeName]);
});
