import { create, toBinary } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { readDescriptorSet } from "../../../../../../gateway/src/protobuf/descriptors/index.ts";
import { compareServices, loadRules } from "../../../../../src/definitions/compare/index.ts";

const length = 20_000;

/** Returns a set in which each message type has a field with the next type, and the last has a string field. */
function chain(lastField: string): Uint8Array {
  const label = FieldDescriptorProto_Label.OPTIONAL;
  const message = FieldDescriptorProto_Type.MESSAGE;
  const last = { name: lastField, number: lastField.length, type: FieldDescriptorProto_Type.STRING };
  const file = create(FileDescriptorProtoSchema, {
    name: "chain.proto",
    package: "chain",
    syntax: "proto3",
    messageType: Array.from({ length }, (_, at) => ({
      name: `M${at}`,
      field: [
        {
          number: 1,
          label,
          ...(at === length - 1 ? last : { name: "next", typeName: `.chain.M${at + 1}`, type: message }),
        },
      ],
    })),
    service: [{ name: "S", method: [{ name: "Call", inputType: ".chain.M0", outputType: ".chain.M0" }] }],
  });
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [file] }));
}

test("a chain of 20,000 nested message types is compared completely", async () => {
  const [old, now] = ["id", "key"].map((field) => readDescriptorSet(chain(field)).services);
  const changes = compareServices(old ?? [], now ?? [], {}, await loadRules());
  expect(changes.map(({ rule, subject }) => `${rule} ${subject}`)).toEqual([`element-hidden chain.M${length - 1}.id`]);
});
