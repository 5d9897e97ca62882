import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createTempFolder, projectFolder, runProgram } from "@protoport/testing/process";
import { type ComparisonCase, toProto } from "./case.ts";

const visibilityProto = `syntax = "proto3";
package google.api;
import "google/protobuf/descriptor.proto";
message VisibilityRule { string restriction = 2; }
extend google.protobuf.EnumOptions { VisibilityRule enum_visibility = 72295727; }
extend google.protobuf.EnumValueOptions { VisibilityRule value_visibility = 72295727; }
extend google.protobuf.FieldOptions { VisibilityRule field_visibility = 72295727; }
extend google.protobuf.MessageOptions { VisibilityRule message_visibility = 72295727; }
extend google.protobuf.MethodOptions { VisibilityRule method_visibility = 72295727; }
extend google.protobuf.ServiceOptions { VisibilityRule api_visibility = 72295727; }
`;

/** The descriptor sets with the test cases' old and new definitions. Case `n` is the package `cn`. */
export type BuiltCases = { readonly old: Uint8Array; readonly now: Uint8Array };

export async function buildCases(cases: readonly ComparisonCase[]): Promise<BuiltCases> {
  const [old, now] = await Promise.all([
    build(cases.map((each, at) => toProto(each.old, `c${at}`))),
    build(cases.map((each, at) => toProto({ ...each.old, ...each.now }, `c${at}`))),
  ]);
  return { old: old ?? new Uint8Array(), now: now ?? new Uint8Array() };
}

async function build(files: readonly string[]): Promise<Uint8Array> {
  using folder = createTempFolder();
  for (const name of ["google/api", "buf/validate"]) mkdirSync(folder.file(name), { recursive: true });
  const copies = [
    ["protoport/gateway/proto/google/api", "google/api"],
    ["protoport/testing/proto/buf/validate", "buf/validate"],
  ] as const;
  for (const [from, to] of copies) cpSync(join(projectFolder, from), folder.file(to), { recursive: true });
  folder.write("google/api/visibility.proto", visibilityProto);
  files.forEach((text, at) => folder.write(`c${at}.proto`, text));
  const buf = join(projectFolder, "node_modules/.bin/buf");
  const image = folder.file("image.binpb");
  const { exitCode, stderr } = await runProgram(buf, ["build", "-o", image], { folder: folder.path });
  if (exitCode !== 0) throw new Error(stderr);
  return readFileSync(image);
}
