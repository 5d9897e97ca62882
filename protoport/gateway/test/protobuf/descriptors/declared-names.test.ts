import { create, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { declaredNames } from "../../../src/protobuf/descriptors/parse-files.ts";

test("declaredNames returns the services and RPCs in all files", () => {
  const file = [
    { name: "a.proto", package: "a.v1", service: [{ name: "One", method: [{ name: "Get" }, { name: "List" }] }] },
    { name: "b.proto", service: [{ name: "Two", method: [{ name: "Get" }] }, { name: "Three" }] },
  ];
  const want = { services: ["a.v1.One", "Two", "Three"], rpcs: ["a.v1.One.Get", "a.v1.One.List", "Two.Get"] };
  expect(declaredNames(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file })))).toEqual(want);
});

test("declaredNames rejects bytes that are not protobuf", () => {
  expect(() => declaredNames(new TextEncoder().encode("syntax = "))).toThrow();
});
