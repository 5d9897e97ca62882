import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { parseFiles } from "../../../../../src/protobuf/descriptors/parse-files.ts";
import { readInSteps } from "../../../../../src/protobuf/descriptors/read-descriptor-set.ts";
import { readDescriptorSet } from "../../../../../src/protobuf/descriptors/index.ts";
import type { FileInit } from "../../../../../../testing/src/gateway/file-init.ts";
// oxfmt-ignore
import { optionalFiles, setOfFiles, wholeService, withNeedingService
} from "../../../../../../testing/src/gateway/optional-files.ts";

/** Limit of bytes that a step parses: 64 KiB and the field that exceeds them. */
const maxStepBytes = 65 * 1024;

/** Returns a file with this many messages, each of which has a comment with a hundred characters. */
function createFile(name: string, messages: number): FileDescriptorProto {
  const comment = { path: [4, 0], span: [1, 2, 3], leadingComments: "c".repeat(100) };
  const location = Array.from({ length: messages }, () => comment);
  const field = [{ name: "text", jsonName: "text", number: 1, label: 1, type: 9 }];
  const messageType = Array.from({ length: messages }, (_, at) => ({ name: `Message${at}`, field }));
  const method = [{ name: "Run", inputType: `.${name}.Message0`, outputType: `.${name}.Message0` }];
  const parts = { messageType, sourceCodeInfo: { location }, service: [{ name: "Service", method }] };
  return create(FileDescriptorProtoSchema, { name: `${name}.proto`, package: name, syntax: "proto3", ...parts });
}

test.each([
  { name: "one large file", files: [createFile("a", 5_000)] },
  { name: "many files", files: Array.from({ length: 500 }, (_, at) => createFile(`a${at}`, 10)) },
])("a set with $name is parsed in steps below 64 KiB", ({ files }) => {
  const bytes = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: files }));
  const steps = parseFiles(bytes);
  const parsedBytes: number[] = [];
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) parsedBytes.push(step.value);
  expect(Math.max(...parsedBytes)).toBeLessThan(maxStepBytes);
  expect(parsedBytes.length).toBeGreaterThanOrEqual(Math.max(files.length, Math.floor(bytes.length / maxStepBytes)));
  expect(step.value).toEqual(fromBinary(FileDescriptorSetSchema, bytes).file);
});

test("nested comments are parsed without a copy for each level", () => {
  let content = Buffer.alloc(70 * 1024, "\b\0");
  for (let depth = 0; depth < 500; depth++)
    content = Buffer.from(new BinaryWriter().tag(9, WireType.LengthDelimited).bytes(content).finish());
  const set = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(content).finish();
  expect([...parseFiles(set)].reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(2 * set.byteLength);
});

test("readInSteps() yields at least once for each message, service and file", () => {
  const files = Array.from({ length: 20 }, (_, at) => createFile(`a${at}`, 30));
  const steps = readInSteps(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: files })));
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  // Each message is checked, listed and completed.
  expect(count).toBeGreaterThanOrEqual(20 * 30 * 3 + 20 * 3);
  expect(step.value.services.map(({ typeName }) => typeName)).toEqual(files.map((file) => `${file.package}.Service`));
});

test("readInSteps() links files with their imports, and registers all types", () => {
  const user = createFile("b", 1);
  user.dependency.push("a.proto");
  for (const { field } of user.messageType) Object.assign(field[0] ?? {}, { type: 11, typeName: ".a.Message1" });
  const files = [user, createFile("a", 2)];
  const steps = readInSteps(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: files })));
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  const { types } = step.value;
  const imported = types.getMessage("a.Message1");
  const message = types.getMessage("b.Message0");
  expect(message?.fields[0]?.message).toBe(imported);
  expect(message?.file.dependencies[0]).toBe(imported?.file);
});

// Files that only options need may be missing or invalid.

const servicesOf = (...files: readonly FileInit[]): readonly string[] =>
  readDescriptorSet(setOfFiles(files)).services.map(({ typeName }) => typeName);

test.each(optionalFiles)("a service with an unused import that is $name is read", ({ files }) => {
  expect([servicesOf(wholeService, ...files), servicesOf(...files, wholeService)]).toEqual([["a.Whole"], ["a.Whole"]]);
});

test.each(optionalFiles)("a service with a used import that is $name is omitted or refused", ({ files, problem }) => {
  const needing = [withNeedingService, ...files];
  if (problem === undefined) expect(servicesOf(...needing)).toEqual(["a.Whole"]);
  else expect(() => servicesOf(...needing)).toThrow(problem);
});

test("a file without a service is refused when it is invalid", () => {
  for (const { files, problem } of optionalFiles) {
    if (problem !== undefined) expect(() => servicesOf(...files)).toThrow(problem);
  }
});

test("an options file cannot define a type that a service uses", () => {
  const claiming: FileInit = { name: "options.proto", package: "a", messageType: [{ name: "Text" }] };
  expect(() => servicesOf(claiming, wholeService)).toThrow("a.Text is defined more than once");
});

test("an options file does not replace a type in a service's file", () => {
  const unused: FileInit = { ...wholeService, messageType: [...(wholeService.messageType ?? []), { name: "Unused" }] };
  const claiming: FileInit = { name: "options.proto", package: "a", messageType: [{ name: "Unused" }] };
  const { services, types } = readDescriptorSet(setOfFiles([claiming, unused]));
  expect([services.length, types.getMessage("a.Unused")?.file.name]).toEqual([1, "a"]);
});

test("a placeholder file is ignored if the set contains the real file", () => {
  const placeholder: FileInit = { name: "a.proto", syntax: "<unknown:0>" };
  expect(servicesOf(placeholder, wholeService, placeholder)).toEqual(["a.Whole"]);
});

test("an unused file with more than 200,000 types is refused", () => {
  const messageType = Array.from({ length: 200_001 }, (_, at) => ({ name: `M${at}` }));
  const large: FileInit = { name: "options.proto", syntax: "proto3", messageType };
  expect(() => servicesOf(wholeService, large)).toThrow("there must be at most 200000 types");
});
