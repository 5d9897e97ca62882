import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { Health } from "../../../src/health/index.ts";
import { ServerReflection } from "../../../src/reflection/index.ts";
// oxfmt-ignore
import { exchange, type HttpRequest, type HttpResponse, projectFolder, rpcRequest, wireFormats
} from "@protoport/testing";
import { startExample } from "../../../../testing/src/process/example-server.ts";

const getReadingProcedure = "/greenhouse.v1.GreenhouseService/GetReading";
const json = ["content-type", "application/json"] as const;

// protoport/gateway/test/engine/compared-with-node compares what clients of the two observe.
test("a connect-node server migrates to the gateway by changing only its import", () => {
  const [before, after] = ["on-connect-node.ts", "on-gateway.ts"].map((file) =>
    readFileSync(join(projectFolder, "protoport/examples/servers", file), "utf8").split("\n"),
  );
  const different = before?.filter((line, at) => line !== after?.[at]);
  expect(after).toHaveLength(before?.length ?? 0);
  expect(different).toEqual(['import { connectNodeAdapter } from "@connectrpc/connect-node";']);
});

test.each([
  { file: "servers/node-http.ts", versions: ["1.1"], prefix: "/api", page: "<h1>Greenhouse</h1>\n" },
  { file: "servers/node-http2.ts", versions: ["2"], prefix: "", page: "<h1>Greenhouse</h1>\n" },
  { file: "servers/listening.ts", versions: ["1.1", "2"], prefix: "", page: undefined },
  { file: "servers/workers.ts", versions: ["1.1", "2"], prefix: "", page: undefined },
  { file: "servers/on-gateway.ts", versions: ["2"], prefix: "", page: undefined },
] as const)(
  "$file serves RPCs and REST, and passes other requests to the application",
  async ({ file, versions, prefix, page }) => {
    await using server = await startExample(file);
    for (const version of versions) {
      const ask = (request: HttpRequest): Promise<HttpResponse> => exchange(server.address, version, request);
      const rest = await ask({ httpMethod: "GET", path: `${prefix}/sensors/palm/reading`, header: [] });
      expect(JSON.parse(String(rest.body))).toEqual({ sensor: "palm", degreesCelsius: 21 });
      const procedure = `${prefix}${getReadingProcedure}`;
      const call = await ask(rpcRequest(wireFormats["connect-json"], Buffer.from('{"sensor":"door"}'), [], procedure));
      expect(JSON.parse(String(call.body))).toMatchObject({ degreesCelsius: 12.5 });
      const absent = await ask({ httpMethod: "GET", path: `${prefix}/sensors/none/reading`, header: [] });
      expect(absent.httpStatus).toBe(404);
      expect(JSON.parse(String(absent.body))).toMatchObject({ message: 'there is no sensor "none"' });
      const other = await ask({ httpMethod: "POST", path: "/beds", header: [json], body: Buffer.from("{}") });
      if (page === undefined) expect(other.httpStatus).toBe(404);
      else expect(String(other.body)).toBe(page);
    }
  },
);

test("servers/workers.ts exits with 0 on a signal, even after a worker died", async () => {
  await using server = await startExample("servers/workers.ts");
  const { pid } = server.process;
  const ask: HttpRequest = { httpMethod: "GET", path: "/sensors/palm/reading", header: [] };
  expect((await exchange(server.address, "1.1", ask)).httpStatus).toBe(200);
  const workers = (): readonly string[] =>
    readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, "utf8").split(" ");
  const [worker] = workers();
  process.kill(Number(worker), "SIGKILL");
  // Until node:cluster notices the exit, it passes connections to the dead worker, which get no response.
  await expect.poll(workers).not.toContain(worker);
  expect((await exchange(server.address, "1.1", ask)).httpStatus).toBe(200);
  server.process.kill("SIGTERM");
  expect([await server.end(), server.stderr()]).toEqual([0, ""]);
});

test("servers/operations.ts serves health, reflection, probes and docs, and metrics on another port", async () => {
  await using server = await startExample("servers/operations.ts");
  const [, admin = ""] = await server.find(/\n(http:\S+)\n/);
  const textOf = async (path: string): Promise<string> => {
    const { httpStatus, body } = await exchange(server.address, "2", { httpMethod: "GET", path, header: [] });
    return `${String(httpStatus)} ${String(body)}`;
  };
  expect(await textOf("/readyz")).toBe('200 {"status":"ready"}');
  expect(await textOf("/docs")).toMatch(/^200 <!doctype html>/i);
  expect(await textOf("/openapi.json")).toContain("/sensors/{sensor}/reading");
  expect(await textOf("/metrics")).toMatch(/^404 /);
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${String(server.address.port)}` });
  const service = GreenhouseService.typeName;
  expect(await createClient(Health, transport).check({ service })).toMatchObject({ status: 1 });
  const names: string[] = [];
  const asked = createClient(ServerReflection, transport).serverReflectionInfo(
    (async function* () {
      yield { messageRequest: { case: "listServices" as const, value: "" } };
    })(),
  );
  for await (const { messageResponse } of asked) {
    if (messageResponse.case === "listServicesResponse")
      names.push(...messageResponse.value.service.map(({ name }) => name));
  }
  expect(names).toContain(service);
  const metrics = await (await fetch(admin, { headers: { connection: "close" } })).text();
  expect(metrics).toContain('http_server_request_duration_seconds_count{http_request_method="GET"');
  expect([metrics, await server.stop("SIGTERM")]).toEqual([expect.stringMatching(/^gateway_ready 1$/m), 0]);
});
