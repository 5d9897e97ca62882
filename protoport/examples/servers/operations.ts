// The greenhouse with gRPC health and reflection, probes, a docs page, and metrics on a separate port:
// npx node protoport/examples/servers/operations.ts 8080 9464
//   curl http://127.0.0.1:8080/readyz
//   curl http://127.0.0.1:9464/metrics
import { createGateway } from "@protoport/gateway";
import { createOpenApi } from "@protoport/gateway/openapi";
import { createHealthService, createProbes, Health, maxHealthRequestBytes, Readiness } from "@protoport/gateway/health";
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha } from "@protoport/gateway/reflection";
import { createDocsPage } from "@protoport/docs-page";
import {
  createMetricsEndpoint,
  createRequestMetrics,
  measureGateway,
  measureProcess,
  measureReadiness,
  Metrics,
} from "@protoport/telemetry/metrics";
import { GreenhouseService } from "../gen/greenhouse/v1/greenhouse_pb.ts";
import { routes } from "./greenhouse.ts";

const [port = "8080", adminPort = "9464"] = process.argv.slice(2);

// The dependencies of calls, such as a database, with their `problem`; here nothing can fail.
const readiness = new Readiness({ tank: { problem: undefined } });
const metrics = new Metrics();
const describe = (): string =>
  JSON.stringify(createOpenApi([GreenhouseService], { info: { title: "Greenhouse", version: "1.0.0" } }));

const gateway = createGateway({
  routes: (router) => {
    routes(router);
    router.service(Health, createHealthService({ readiness, services: [GreenhouseService.typeName] }), {
      readMaxBytes: maxHealthRequestBytes,
    });
    const reflection = createReflectionService([GreenhouseService, Health]);
    router.service(ServerReflection, reflection);
    router.service(ServerReflectionV1Alpha, reflection);
  },
  endpoints: [...createProbes(readiness), ...createDocsPage({ document: describe, open: true })],
  onResponse: createRequestMetrics(metrics),
});
measureGateway(metrics, gateway);
measureReadiness(metrics, readiness);
measureProcess(metrics);

// Requires no credential, so only Prometheus must be able to reach this port.
const admin = createGateway({ routes: () => {}, endpoints: [createMetricsEndpoint(() => metrics.collect())] });

const at = await gateway.listen({ port: Number(port) });
const adminAt = await admin.listen({ port: Number(adminPort) });
process.once("SIGTERM", () => {
  readiness.startDraining();
  void gateway.drain(10_000).then(() => admin.close());
});
console.log(`http://${at.address}:${String(at.port)}`);
console.log(`http://${adminAt.address}:${String(adminAt.port)}/metrics`);
