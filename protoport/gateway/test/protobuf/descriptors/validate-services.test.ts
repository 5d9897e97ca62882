import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { createGateway } from "../../../src/index.ts";
import { type FieldInit, type FileInit, stringField } from "../../../../testing/src/gateway/file-init.ts";

// protobuf-es accepts invalid descriptors from a program. A gateway refuses them if its services use them.

/** A service whose request message contains a message with these fields. */
function fileOf(field: readonly FieldInit[], more: Partial<FileInit> = {}): FileInit {
  const typed: FieldInit = { ...stringField("inner", 1), type: Type.MESSAGE, typeName: ".a.Inner" };
  return {
    name: "a.proto",
    package: "a",
    syntax: "proto3",
    messageType: [{ name: "Request", field: [typed] }, { name: "Inner", field: [...field] }, { name: "Response" }],
    service: [{ name: "S", method: [{ name: "Get", inputType: ".a.Request", outputType: ".a.Response" }] }],
    ...more,
  };
}

function serviceOf(file: FileInit): DescService {
  const set = create(FileDescriptorSetSchema, { file: [create(FileDescriptorProtoSchema, file)] });
  return [...createFileRegistry(set)].find((type) => type.kind === "service") ?? expect.unreachable();
}

function start(file: FileInit): Promise<void> {
  const service = serviceOf(file);
  return createGateway({ routes: (router) => void router.service(service, {}) }).close();
}

const response = { name: "Response" };
const method = { name: "Get", inputType: ".a.Response", outputType: ".a.Response" };
const kind: FieldInit = { ...stringField("kind", 1), type: Type.ENUM, typeName: ".a.Kind" };

test.each<{ readonly name: string; readonly file: FileInit; readonly says: string }>([
  {
    name: "a field without a JSON name",
    file: fileOf([{ ...stringField("b", 1), jsonName: "" }]),
    says: "field b of a.Inner has no JSON name",
  },
  {
    name: "two fields with the same number",
    file: fileOf([stringField("b", 1), stringField("c", 1)]),
    says: "field c of a.Inner has number 1, which another field has already",
  },
  {
    name: "two fields with the same name",
    file: fileOf([stringField("b", 1), stringField("b", 2)]),
    says: "a.Inner has more than one member named b",
  },
  {
    name: "the field number 0",
    file: fileOf([stringField("b", 0)]),
    says: "the number of field b of a.Inner must be between 1 and 2147483647, got 0",
  },
  {
    name: "a field whose name begins with a digit",
    file: fileOf([stringField("1b", 1)]),
    says: '"1b" is not a protobuf identifier',
  },
  {
    name: "a message whose name begins with a digit",
    file: fileOf([], {
      messageType: [response, { name: "1Request" }],
      service: [{ name: "S", method: [{ ...method, inputType: ".a.1Request" }] }],
    }),
    says: '"1Request" is not a protobuf identifier',
  },
  {
    name: "a service whose name begins with a digit",
    file: fileOf([], { service: [{ name: "1S", method: [method] }] }),
    says: '"1S" is not a protobuf identifier',
  },
  {
    name: "two RPCs with the same name",
    file: fileOf([], { service: [{ name: "S", method: [method, method] }] }),
    says: "a.S has more than one member named Get",
  },
  {
    name: "two enum values with the same name",
    file: fileOf([kind], { enumType: [{ name: "Kind", value: [{ name: "V" }, { name: "V", number: 1 }] }] }),
    says: "a.Kind has more than one member named V",
  },
  {
    name: "a response field with an invalid number",
    file: fileOf([], { messageType: [{ name: "Request" }, { name: "Response", field: [stringField("b", -1)] }] }),
    says: "the number of field b of a.Response must be between 1 and 2147483647, got -1",
  },
])("createGateway refuses $name in its services", ({ file, says }) => {
  expect(() => start(file)).toThrow(
    expect.objectContaining({
      code: "ERR_DESCRIPTORS",
      message: expect.stringMatching(new RegExp(`^cannot use the descriptors: .*${says.replaceAll(".", "\\.")}`)),
    }),
  );
});

test("createGateway ignores an invalid message that no service uses", async () => {
  const { messageType = [] } = fileOf([]);
  await start(fileOf([], { messageType: [...messageType, { name: "Other", field: [stringField("b", 0)] }] }));
});
