import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { CodeGeneratorResponseSchema } from "@bufbuild/protobuf/wkt";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

// Runs protoc-gen-es and removes its comments, which repeat those of the definitions: tests do not need them.

const response = fromBinary(
  CodeGeneratorResponseSchema,
  execFileSync("protoc-gen-es", { input: readFileSync(process.stdin.fd), maxBuffer: Infinity }),
);
for (const file of response.file) file.content = file.content.replaceAll(/\n* *\/\*\*[^]*?\*\/\n/g, "\n");
process.stdout.write(toBinary(CodeGeneratorResponseSchema, response));
