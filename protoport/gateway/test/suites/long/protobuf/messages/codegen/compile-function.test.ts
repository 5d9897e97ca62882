import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { compileFunction, messageClass } from "../../../../../../src/protobuf/messages/codegen.ts";
import { ReadingSchema } from "../../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { isPeerAtLeast, projectFolder } from "@protoport/testing/process";

const program = join(projectFolder, "protoport/testing/src/gateway/messages-without-code.ts");

// Older protobuf-es versions read and write some odd messages differently.
test.runIf(isPeerAtLeast("@bufbuild/protobuf", "2.16")).each([
  ["--disallow-code-generation-from-strings", ["--disallow-code-generation-from-strings", program], false],
  ["--no-codegen", [program, "--no-codegen"], false],
  ["the default options", [program], true],
])("with %s, random messages equal those of the reference code", (_name, words, canCompile) => {
  const output = execFileSync(process.execPath, words, { encoding: "utf8" });
  expect(JSON.parse(output)).toEqual({ canCompile, same: 1200, different: 0 });
});

test("a compiled function runs in strict mode with the values of its scope", () => {
  const compiled = compileFunction<() => unknown>("function () { return [value, this]; }", { value: 7 });
  expect(compiled()).toEqual([7, undefined]);
});

test("messageClass() returns one constructor for each message type", () =>
  expect(messageClass(ReadingSchema)).toBe(messageClass(ReadingSchema)));
