import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { startCatalog } from "../../../testing/src/gateway/catalog.ts";
import { buildLimitMs, buildStep, hasProgram, openPython, projectFolder } from "@protoport/testing/process";

// Programs that get a service's definition by reflection, in both versions.

const book = "shelves/green/books/moss";
const data = JSON.stringify({ name: book });
const buf = join(projectFolder, "node_modules/.bin/buf");

// oxfmt-ignore
const tools = [
  { tool: "grpcurl", call: (at: string) => ["grpcurl", "-plaintext", "-d", data, at, "catalog.v1.Catalog/GetBook"],
    response: '"title": "Moss"' },
  ...["grpc-v1", "grpc-v1alpha"].map((protocol) => ({ tool: `buf curl by ${protocol}`,
    call: (at: string) => [
      buf,
      "curl",
      "--http2-prior-knowledge",
      "--protocol=grpc",
      `--reflect-protocol=${protocol}`,
      `--data=${data}`,
      `http://${at}/catalog.v1.Catalog/GetBook`,
    ],
    response: '"title": "Moss"',
  })),
  { tool: "ghz", call: (at: string) => [
      "ghz",
      "--insecure",
      "--call=catalog.v1.Catalog.GetBook",
      "-n",
      "20",
      "-c",
      "2",
      "-d",
      data,
      at,
    ], response: "[OK]   20 responses" },
  { tool: "grpcio-reflection",
    call: (at: string) => ["python", join(import.meta.dirname, "python/reflection_client.py"), at, book],
    response: "Moss" },
];

describe.runIf(["grpcurl", "ghz", "python3"].every(hasProgram))("the reflection service", () => {
  let programs: string;

  beforeAll(async () => {
    programs = await openPython(join(projectFolder, "protoport/test/suites/generators/requirements.txt"));
  }, buildLimitMs);

  test.each(tools)("lets $tool call a service without a .proto file", async ({ call, response }) => {
    await using server = await startCatalog();
    const at = `127.0.0.1:${server.address.port}`;
    const header = { "content-type": "application/json" };
    const created = { method: "POST", headers: header, body: JSON.stringify({ title: "Moss" }) };
    expect((await fetch(`http://${at}/v1/shelves/green/books?bookId=moss`, created)).status).toBe(200);
    const [program = "", ...args] = call(at);
    const environment = { PATH: `${programs}:${process.env["PATH"]}` };
    expect(await buildStep(program, args, { environment })).toContain(response);
  });
});
