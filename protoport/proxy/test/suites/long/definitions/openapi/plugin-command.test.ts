import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, test } from "vitest";
import { descriptorSetOf, file_orders_v1_orders, runProxyCommand } from "@protoport/testing/proxy";
import { file_library_v1_library } from "../../../../../../testing/src/gen/library/v1/library_pb.ts";
import { createTempFolder, projectFolder, runProgram } from "@protoport/testing/process";

const folder = createTempFolder();
const { write } = folder;
afterAll(() => folder[Symbol.dispose]());

const orders = write("orders.binpb", descriptorSetOf(file_orders_v1_orders));
const both = write("both.binpb", descriptorSetOf(file_orders_v1_orders, file_library_v1_library));

const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
const plugin = "protoc-gen-openapi";

describe("the protoc plugin", () => {
  test("writes the same document when buf runs it", async () => {
    const config = {
      version: "v2",
      plugins: [
        {
          local: [process.execPath, main, plugin],
          out: folder.file("generated"),
          strategy: "all",
          opt: ["format=yaml", "version=3.2", "title=Orders"],
        },
      ],
    };
    const template = write("buf.gen.json", JSON.stringify(config));
    const { exitCode, stderr } = await runProgram(join(projectFolder, "node_modules/.bin/buf"), [
      "generate",
      both,
      "--template",
      template,
      "--path",
      file_orders_v1_orders.proto.name,
    ]);
    expect([exitCode, stderr]).toEqual([0, ""]);
    const { printed } = await runProxyCommand(
      "openapi",
      orders,
      "--format",
      "yaml",
      "--version",
      "3.2",
      "--title",
      "Orders",
    );
    expect(readFileSync(folder.file("generated/openapi.yaml"), "utf8")).toBe(`${printed}\n`);
  });

  test.each([
    { parameter: "version=4", says: "--version must be 3.1 or 3.2" },
    { parameter: "titel=a", says: 'unknown flag "--titel"' },
  ])("reports the invalid option $parameter in its response", async ({ parameter, says }) => {
    const { file } = fromBinary(FileDescriptorSetSchema, readFileSync(orders));
    const fileToGenerate = [file_orders_v1_orders.proto.name];
    const request = create(CodeGeneratorRequestSchema, { fileToGenerate, parameter, protoFile: file });
    const input = write("request.bin", toBinary(CodeGeneratorRequestSchema, request));
    const output = folder.file("response.bin");
    const command = `exec "${process.execPath}" "${main}" ${plugin} < "${input}" > "${output}"`;
    expect((await runProgram("sh", ["-c", command])).exitCode).toBe(0);
    const response = fromBinary(CodeGeneratorResponseSchema, readFileSync(output));
    expect(response).toMatchObject({ error: expect.stringContaining(says), file: [] });
  });
});
