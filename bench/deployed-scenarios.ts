import { createCertificate } from "../protoport/testing/src/http/certificate.ts";
import type { LoadShape, Variant } from "../protoport/bench/load/load.ts";
import { grpcProbe, http1Probe } from "../protoport/bench/probe.ts";
import { http1Load, http2Load, installedPeers, type Scenario, type Subject } from "../protoport/bench/scenarios.ts";
import { grpcJs, grpcShape, nativeSubjects, nodeHttp, nodeHttp2, own, restShape } from "./plant-scenarios.ts";

/** Number of requests that differ in id, trace and field order, like the requests of different callers. */
const variedRequests = 100;

/** Average number of requests on a connection before its client closes it. */
const requestsPerConnection = 10;

const variedShape: LoadShape = {
  ...restShape,
  variants: Array.from({ length: variedRequests }, (_, index) => variedRequest(index)),
};

const shortShape: LoadShape = {
  ...restShape,
  variants: Array.from({ length: requestsPerConnection }, (_, index) => ({
    ...restShape,
    header: index === 0 ? { ...restShape.header, connection: "close" } : restShape.header,
  })),
};

const newShape: LoadShape = { ...restShape, header: { ...restShape.header, connection: "close" }, connections: 16 };

const { cert, key } = createCertificate("bench");
const tlsEnvironment = { BENCH_CERT: cert, BENCH_KEY: key };

const http1Subjects = [nodeHttp, own, ...installedPeers(["fastify"], import.meta.dirname), ...nativeSubjects("rest")];

/**
 * Scenarios in which DeletePlant is called as in production, by different callers, on short connections, or over TLS.
 */
export const deployedScenarios: readonly Scenario[] = [
  overHttp1(
    "rest-varied",
    `DELETE of ${variedRequests} plants, with header fields that vary, 64 connections`,
    variedShape,
  ),
  overHttp1("rest-new", "DELETE /plants/7 on a new connection each, 16 at a time", newShape),
  overHttp1("rest-short", `DELETE /plants/7 on connections of about ${requestsPerConnection} requests`, shortShape),
  overTls(overHttp1("rest-tls", "DELETE /plants/7 over HTTP/1.1 and TLS 1.3, 64 connections", restShape)),
  overTls({
    name: "grpc-tls",
    title: "DeletePlant as gRPC over TLS 1.3, 8 connections of 32 streams",
    shape: grpcShape,
    load: http2Load(grpcShape),
    probe: grpcProbe(grpcShape),
    subjects: [nodeHttp2, own, grpcJs, ...nativeSubjects("grpc")],
  }),
];

function overHttp1(name: string, title: string, shape: LoadShape): Scenario {
  return { name, title, shape, load: http1Load(shape), probe: http1Probe(shape), subjects: http1Subjects };
}

/** Returns the scenario over TLS, without the peer in Rust, which has no TLS. */
function overTls({ subjects, ...scenario }: Scenario): Scenario {
  const shape = { ...scenario.shape, isTls: true };
  const isHttp2 = shape.streams > 1;
  return {
    ...scenario,
    shape,
    load: isHttp2 ? http2Load(shape) : http1Load(shape),
    probe: isHttp2 ? grpcProbe(shape) : http1Probe(shape),
    subjects: subjects.filter(({ name }) => !/Rust/.test(name)).map(withCertificate),
  };
}

function withCertificate(subject: Subject): Subject {
  return { ...subject, environment: { ...subject.environment, ...tlsEnvironment } };
}

/** Returns a request whose path, trace and field order depend on its index. */
function variedRequest(index: number): Variant {
  const id = (index + 1).toString(16).padStart(2, "0");
  const fields = Object.entries({
    ...restShape.header,
    traceparent: `00-${id.repeat(16)}-${id.repeat(8)}-01`,
    "user-agent": `inventory/${index % 7}`,
    accept: "*/*",
    "x-request-id": `${id}-${index}`,
  });
  const start = index % fields.length;
  const header = Object.fromEntries([...fields.slice(start), ...fields.slice(0, start)]);
  return { path: `/plants/${index + 1}`, header };
}
