import { create, createFileRegistry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { enumNumberByName, shortEnumName } from "../../../src/gateway/json/names.ts";

const file = create(FileDescriptorProtoSchema, {
  name: "odd.proto",
  syntax: "proto3",
  enumType: [
    {
      name: "Odd",
      value: [
        { name: "ODD_ZERO", number: 0 },
        { name: "ODD_ODD_ONE", number: 1 },
        { name: "ODD_ONE", number: 2 },
      ],
    },
  ],
});

test("a name without its prefix is none where another value has it as its whole name", () => {
  const odd = createFileRegistry(file, () => undefined).getEnum("Odd");
  if (odd === undefined) throw new Error("there is no such enum");
  expect(shortEnumName(odd, "ODD_ODD_ONE")).toBeUndefined();
  expect(shortEnumName(odd, "ODD_ONE")).toBe("ONE");
  expect(enumNumberByName(odd, "ODD_ONE", true)).toBe(2);
  expect(enumNumberByName(odd, "ONE", true)).toBe(2);
  expect(enumNumberByName(odd, "ONE")).toBeUndefined();
});
