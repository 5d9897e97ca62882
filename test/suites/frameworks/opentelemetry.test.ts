import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
// oxfmt-ignore
import { type CommandLine, exchange, type Field, getReadingProcedure, type HttpRequest, type HttpVersion, projectFolder,
  rpcRequest, shared, startNode, wireFormats } from "@protoport/testing";
import { startPostgres } from "../../support/plants/postgres-server.ts";
import { type ReceivedSpan, startOtlpReceiver } from "../../../protoport/testing/src/telemetry/otlp-receiver.ts";

// The spans that a collector receives for one call to a program with OpenTelemetry's SDK and instrumentations.

let program: CommandLine;
let ports: Readonly<Record<"own" | "mounted", number>>;
const collector = shared(() => startOtlpReceiver());
const postgres = shared(() => startPostgres());
beforeAll(async () => {
  const file = join(projectFolder, "test/support/telemetry/instrumented-server.ts");
  program = startNode([file, collector.url, await postgres.createSchema()], projectFolder);
  const [, own, mounted] = await program.find(/own (\d+) mounted (\d+)/);
  ports = { own: Number(own), mounted: Number(mounted) };
});
afterAll(() => program[Symbol.asyncDispose]());
const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";
const header: readonly Field[] = [["traceparent", `00-${traceId}-${parentId}-01`]];
const getReading = "greenhouse.v1.GreenhouseService/GetReading";
const watchReadings = "greenhouse.v1.GreenhouseService/WatchReadings";
const rest: HttpRequest = { httpMethod: "GET", path: "/sensors/7/reading", header };
const noMessage = new Uint8Array(0);

/** Returns the span names from a query up to the caller, which is another program. */
function waysUp(spans: readonly ReceivedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const wayFrom = (spanId: string): string => {
    const span = byId.get(spanId);
    if (span === undefined) return spanId === parentId ? "caller" : `the unknown span ${spanId}`;
    const isOfCaller = span.traceId === traceId;
    return `${isOfCaller ? "" : "another trace: "}${span.name.split(" ")[0]} (${span.kind}) < ${wayFrom(span.parentSpanId)}`;
  };
  return spans.filter(({ name }) => name.startsWith("pg.query")).map(({ spanId }) => wayFrom(spanId));
}

const server = 2;
const internal = 1;
const query = "pg.query:SELECT (3) < handler (1)";

test.each<{ name: string; at: "own" | "mounted"; version: HttpVersion; request: HttpRequest; want: string }>(
  // oxfmt-ignore
  [
    { name: "REST", at: "own", version: "1.1", request: rest, want: `GET (${server}) < caller` },
    { name: "REST over HTTP/2", at: "own", version: "2", request: rest, want: `GET (${server}) < caller` },
    ...(["connect-proto", "grpc", "grpc-web"] as const).map((format) => ({ name: format,
      at: "own" as const,
      version: format === "grpc" ? ("2" as const) : ("1.1" as const),
      request: rpcRequest(wireFormats[format], noMessage, header, getReadingProcedure),
      want: `${getReading} (${server}) < caller`,
    })),
    { name: "a gRPC stream", at: "own", version: "2",
      request: rpcRequest(wireFormats.grpc, noMessage, header, `/${watchReadings}`),
      want: `${watchReadings} (${server}) < caller` },
    { name: "REST in an instrumented node:http server", at: "mounted", version: "1.1", request: rest,
      want: `GET (${internal}) < GET (${server}) < caller` },
    { name: "Connect in an instrumented node:http server", at: "mounted", version: "1.1",
      request: rpcRequest(wireFormats["connect-json"], Buffer.from("{}"), header, getReadingProcedure),
      want: `${getReading} (${internal}) < POST (${server}) < caller` },
  ],
)("over $name, a pg query's span descends from handler, gateway and caller", async (row) => {
  collector.spans.length = 0;
  await exchange({ address: "127.0.0.1", port: ports[row.at] }, row.version, row.request);
  await expect.poll(() => waysUp(collector.spans)).toEqual([`${query} < ${row.want}`]);
});
