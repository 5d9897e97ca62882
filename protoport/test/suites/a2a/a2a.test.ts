import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gardener } from "../../../examples/a2a/gardener.ts";
import { serveAgent, type ServedAgent } from "../../../examples/a2a/serve-agent.ts";
import { file_lf_a2a_v1_a2a } from "../../../examples/gen/lf/a2a/v1/a2a_pb.ts";
import { openPython } from "../../../testing/src/process/python.ts";
import { callFromJavaScript } from "./a2a-js.ts";
import { proxyAgent } from "./proxied-agent.ts";
import { type Binding, expected, type Results } from "./results.ts";

// The official clients call the agent in protoport/examples/a2a.

const folder = import.meta.dirname;
let agent: ServedAgent;
beforeAll(async () => {
  agent = await serveAgent(gardener, 0);
});
afterAll(async () => await agent.stop());

async function runPython(args: readonly string[]): Promise<string> {
  const programs = await openPython(join(folder, "requirements.txt"));
  const { stdout } = await promisify(execFile)(join(programs, "python"), args, { timeout: 60_000 });
  return stdout;
}

async function callFromPython(url: string, binding: Binding): Promise<Results> {
  return JSON.parse(await runPython([join(folder, "client.py"), url, binding]));
}

describe.each([
  { client: "@a2a-js/sdk", call: callFromJavaScript, invalid: "RequestMalformedError" },
  { client: "a2a-sdk", call: callFromPython, invalid: "InvalidParamsError" },
])("$client", ({ call, invalid }) => {
  const refusal = [invalid, "message.parts must have at least one part"];
  const results = { ...expected, "invalid message": refusal, "invalid stream": refusal };

  test.each<Binding>(["HTTP+JSON", "GRPC"])("gets the agent's %s responses", async (binding) => {
    expect(await call(agent.url, binding)).toEqual(results);
  });

  test("gets the agent's responses over HTTP+JSON through a proxy", async () => {
    await using proxied = await proxyAgent(agent.url);
    expect(await call(proxied.url, "HTTP+JSON")).toEqual(results);
  });
});

test("every declaration in the definition matches the official one", async () => {
  const printDescriptor =
    "import base64; from a2a.types import a2a_pb2; print(base64.b64encode(a2a_pb2.DESCRIPTOR.serialized_pb).decode())";
  const official = fromBinary(FileDescriptorProtoSchema, base64Decode(await runPython(["-c", printDescriptor])));
  const declared = declarationsOf(file_lf_a2a_v1_a2a.proto);
  expect(declared.length).toBeGreaterThan(100);
  expect(declared.filter((each) => !declarationsOf(official).includes(each))).toEqual([]);
});

/** Returns a line for each declaration, with what determines its binary form. */
function declarationsOf({ package: name, messageType, enumType, service }: FileDescriptorProto): readonly string[] {
  return [
    ...messageType.flatMap((message) =>
      message.field.map((field) =>
        [name, message.name, field.name, field.number, field.label, field.type, field.typeName].join(" "),
      ),
    ),
    ...enumType.flatMap((each) => each.value.map((value) => [name, each.name, value.name, value.number].join(" "))),
    ...service.flatMap((each) =>
      each.method.map((method) =>
        [name, each.name, method.name, method.inputType, method.outputType, method.serverStreaming].join(" "),
      ),
    ),
  ];
}
