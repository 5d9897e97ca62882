import { createRequire } from "node:module";
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { HttpInstrumentation } from "@opentelemetry/instrumentation-http";
import { PgInstrumentation } from "@opentelemetry/instrumentation-pg";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { SimpleSpanProcessor } from "@opentelemetry/sdk-trace";
import { GreenhouseService } from "../../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { withOpenTelemetry } from "@protoport/telemetry/opentelemetry";
import { createTestGateway } from "../../../protoport/testing/src/gateway/test-gateway.ts";
import { listenOnLoopback } from "../../../protoport/testing/src/http/listen-on-loopback.ts";
import { configOf } from "../plants/postgres-server.ts";

// A program whose handlers query PostgreSQL, with OpenTelemetry's SDK and instrumentations. The program serves the
// gateway by itself and in a node:http server. Its arguments are the URLs of the collector and the database.

const [collector = "", database = ""] = process.argv.slice(2);
new NodeSDK({
  autoDetectResources: false,
  metricReaders: [],
  logRecordProcessors: [],
  spanProcessors: [new SimpleSpanProcessor({ exporter: new OTLPTraceExporter({ url: `${collector}/v1/traces` }) })],
  instrumentations: [new HttpInstrumentation(), new PgInstrumentation()],
}).start();

// Loaded with `require`, because instrumentations patch only modules that are required after them.
const require = createRequire(import.meta.url);
const { createServer }: typeof import("node:http") = require("node:http");
const { Pool }: typeof import("pg") = require("pg");
const pool = new Pool({ ...configOf(database), max: 4 });

async function runQuery(): Promise<void> {
  await trace.getTracer("program").startActiveSpan("handler", async (span) => {
    await pool.query("SELECT 1");
    span.end();
  });
}

const gateway = createTestGateway(
  withOpenTelemetry({
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: async () => {
          await runQuery();
          return {};
        },
        async *watchReadings() {
          yield {};
          await runQuery();
          yield {};
        },
      }),
  }),
);
const { port } = await gateway.listen();
const { port: mounted } = new URL(await listenOnLoopback(createServer(gateway.handler)));
console.log(`own ${port} mounted ${mounted}`);
