import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { CodeGeneratorResponseSchema } from "@bufbuild/protobuf/wkt";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

// protoc-gen-es without its comments, which say once more what is in the definitions: for the code of tests, which no
// user looks into.

const answer = fromBinary(
  CodeGeneratorResponseSchema,
  execFileSync("protoc-gen-es", { input: readFileSync(process.stdin.fd), maxBuffer: Infinity }),
);
for (const file of answer.file) file.content = file.content.replaceAll(/\n* *\/\*\*[^]*?\*\/\n/g, "\n");
process.stdout.write(toBinary(CodeGeneratorResponseSchema, answer));
