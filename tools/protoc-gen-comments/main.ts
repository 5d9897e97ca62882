/**
 * A protoc plugin that writes a module with the comments of each definition that has any. Generated descriptors have no
 * comments, but the OpenAPI document needs them as descriptions.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
} from "@bufbuild/protobuf/wkt";
import { readFileSync, writeSync } from "node:fs";
import { commentsOfFiles } from "../../src/gateway/openapi/comments.ts";

const request = fromBinary(CodeGeneratorRequestSchema, readFileSync(0));
const file = request.protoFile
  .filter(({ name }) => request.fileToGenerate.includes(name))
  .flatMap((definition) => {
    const comments = [...commentsOfFiles([definition])];
    return comments.length === 0
      ? []
      : [{ name: outputName(definition.name), content: print(definition.name, comments) }];
  });
const response = create(CodeGeneratorResponseSchema, {
  file,
  supportedFeatures: BigInt(CodeGeneratorResponse_Feature.PROTO3_OPTIONAL),
});
writeSync(1, toBinary(CodeGeneratorResponseSchema, response));

function outputName(definition: string): string {
  return definition.replace(/\.proto$/, "_comments.ts");
}

function print(definition: string, comments: readonly (readonly [string, string])[]): string {
  const entries = comments.map((entry) => `  ${JSON.stringify(entry)},`);
  return [
    `// @generated from the comments of ${definition}`,
    "",
    "/** The comments of the definition, by the full name of what they describe. */",
    "export const comments: ReadonlyMap<string, string> = new Map([",
    ...entries,
    "]);",
    "",
  ].join("\n");
}
