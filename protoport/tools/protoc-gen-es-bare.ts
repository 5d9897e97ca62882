import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { CodeGeneratorResponseSchema } from "@bufbuild/protobuf/wkt";
import { execFileSync } from "node:child_process";
import { buffer } from "node:stream/consumers";

// Runs protoc-gen-es and removes its comments, which repeat the definitions' comments. Tests do not need comments.

// The request is read asynchronously, because buf's pipe may be non-blocking, and a synchronous read then fails with
// EAGAIN.
const request = await buffer(process.stdin);
const response = fromBinary(
  CodeGeneratorResponseSchema,
  execFileSync("protoc-gen-es", { input: request, maxBuffer: Infinity }),
);
for (const file of response.file) file.content = file.content.replaceAll(/\n* *\/\*\*[^]*?\*\/\n/g, "\n");
process.stdout.write(toBinary(CodeGeneratorResponseSchema, response));
