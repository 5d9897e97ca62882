import { once } from "node:events";
import { Agent, request } from "node:http";
import { Agent as TlsAgent, request as requestOverTls } from "node:https";
import { connect } from "node:http2";
import { originOf, percentilesOf, type LoadResult } from "./load.ts";
import type { OwnClientOptions } from "./own-load.ts";

// A load generator for machines without wrk and h2load. The program reads its options, sends the load, and prints the
// result as JSON.

/** Sends one request, and returns whether the response is as expected. */
type Send = () => Promise<boolean>;

const { shape, port, durationS }: OwnClientOptions = JSON.parse(process.argv[2] ?? "");
const body = shape.bodyBase64 === undefined ? undefined : Buffer.from(shape.bodyBase64, "base64");
const latenciesUs: number[] = [];
let failures = 0;

const startedMs = performance.now();
const endMs = startedMs + durationS * 1_000;
const { sends, close } = shape.streams > 1 ? openHttp2() : openHttp1();
await Promise.all(sends.map(repeat));
close();

const result: LoadResult = {
  requests: latenciesUs.length,
  failures,
  durationS: (performance.now() - startedMs) / 1_000,
  latencyUs: percentilesOf(Float64Array.from(latenciesUs)),
};
process.stdout.write(JSON.stringify(result));

async function repeat(send: Send): Promise<void> {
  for (let nowMs = performance.now(); nowMs < endMs;) {
    const isExpected = await send();
    const doneMs = performance.now();
    latenciesUs.push((doneMs - nowMs) * 1_000);
    if (!isExpected) failures += 1;
    nowMs = doneMs;
  }
}

function openHttp1(): { sends: Send[]; close: () => void } {
  const { isTls = false, variants = [] } = shape;
  const options = { keepAlive: true, maxSockets: shape.connections };
  const agent = isTls ? new TlsAgent({ ...options, rejectUnauthorized: false }) : new Agent(options);
  const open = isTls ? requestOverTls : request;
  let sent = 0;
  const send: Send = async () => {
    const { httpMethod: method } = shape;
    const { path, header } = variants[sent++ % Math.max(1, variants.length)] ?? shape;
    const length = body === undefined ? {} : { "content-length": body.byteLength };
    const call = open({ host: "127.0.0.1", port, agent, method, path, headers: { ...header, ...length } });
    call.end(body);
    const [response] = await once(call, "response");
    response.resume();
    await once(response, "end");
    // Every thousandth call fails by design. The response then has status 400 over REST and 404 over Connect.
    return response.statusCode < 401 || response.statusCode === 404;
  };
  return { sends: Array.from({ length: shape.connections }, () => send), close: () => agent.destroy() };
}

function openHttp2(): { sends: Send[]; close: () => void } {
  const origin = originOf({ ...shape, body }, port);
  const sessions = Array.from({ length: shape.connections }, () => connect(origin, { rejectUnauthorized: false }));
  const head = { ":method": shape.httpMethod, ":path": shape.path, ...shape.header };
  const senders = sessions.flatMap((session) =>
    Array.from({ length: shape.streams }, () => async () => {
      const stream = session.request(head);
      let httpStatus = 0;
      stream.on("response", (header) => (httpStatus = header[":status"] ?? 0));
      stream.resume().end(body);
      await once(stream, "end");
      return httpStatus === 200;
    }),
  );
  return { sends: senders, close: () => sessions.forEach((session) => session.close()) };
}
