import { expect, test } from "vitest";
import { readDescriptorSet } from "../../../../../src/protobuf/descriptors/index.ts";
import type { FileInit } from "../../../../../../testing/src/gateway/file-init.ts";
// oxfmt-ignore
import { optionalFiles, setOfFiles, withNeedingService, wholeService
} from "../../../../../../testing/src/gateway/optional-files.ts";

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
