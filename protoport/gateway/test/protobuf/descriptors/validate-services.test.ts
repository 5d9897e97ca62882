import { create, createFileRegistry, type DescService } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema, FileDescriptorSetSchema
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

test.each<[name: string, file: FileInit, says: string]>(
  // oxfmt-ignore
  [
    ["a field without a JSON name", fileOf([{ ...stringField("b", 1), jsonName: "" }]),
      "field b of a.Inner has no JSON name"],
    ["two fields with the same number", fileOf([stringField("b", 1), stringField("c", 1)]),
      "field c of a.Inner has number 1, which another field has already"],
    ["a message whose name begins with a digit", fileOf([], { messageType: [response, { name: "1Request" }],
        service: [{ name: "S", method: [{ ...method, inputType: ".a.1Request" }] }],
      }), '"1Request" is not a protobuf identifier'],
    ["a service whose name begins with a digit", fileOf([], { service: [{ name: "1S", method: [method] }] }),
      '"1S" is not a protobuf identifier'],
    ["two RPCs with the same name", fileOf([], { service: [{ name: "S", method: [method, method] }] }),
      "a.S has more than one member named Get"],
    ["two enum values with the same name",
      fileOf([kind], { enumType: [{ name: "Kind", value: [{ name: "V" }, { name: "V", number: 1 }] }] }),
      "a.Kind has more than one member named V"],
    ["a response field with an invalid number",
      fileOf([], { messageType: [{ name: "Request" }, { name: "Response", field: [stringField("b", -1)] }] }),
      "the number of field b of a.Response must be between 1 and 2147483647, got -1"],
  ],
)("createGateway refuses %s in its services", (_name, file, says) => {
  const pattern = new RegExp(`^cannot use the descriptors: .*${says.replaceAll(".", "\\.")}`);
  const want = { code: "ERR_DESCRIPTORS", message: expect.stringMatching(pattern) };
  expect(() => start(file)).toThrow(expect.objectContaining(want));
});

test("createGateway ignores an invalid message that no service uses", async () => {
  const { messageType = [] } = fileOf([]);
  await start(fileOf([], { messageType: [...messageType, { name: "Other", field: [stringField("b", 0)] }] }));
});
