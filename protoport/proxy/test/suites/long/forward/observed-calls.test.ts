import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { CompletedRequest } from "../../../../../gateway/src/index.ts";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { CallEnd, ProxyOptions, UpstreamCallObserver } from "../../../../src/create-proxy.ts";
import { createUpstream } from "../../../../src/upstreams/index.ts";
import { dataFrame, exchangeHttp2, headersFrame, resetFrame } from "@protoport/testing/http";
// oxfmt-ignore
import { grpcHead, grpcResponse, respondWatered, type Script, startProxy, startScriptedServer, watered
} from "@protoport/testing/proxy";

const json = [["content-type", "application/json"]] as const;
const post = { httpMethod: "POST", header: json, body: Buffer.from("{}") };
const water = { ...post, path: "/beds/1:water" };
const grpc = [["content-type", "application/grpc+proto"]] as const;
const watch = { ...post, path: "/greenhouse.v1.GreenhouseService/WatchReadings", header: grpc, body: watered };
const failed = Object.entries({ "grpc-status": String(Code.NotFound), "grpc-message": "no bed" });

function recorder(): { observer: UpstreamCallObserver; calls: string[]; ends: CallEnd[] } {
  const calls: string[] = [];
  const ends: CallEnd[] = [];
  const observer: UpstreamCallObserver = ({ method }) => {
    calls.push(method.name);
    return (end) => ends.push(end);
  };
  return { observer, calls, ends };
}

async function send(
  script: Script,
  request: Parameters<typeof exchangeHttp2>[1],
  options: Partial<ProxyOptions>,
): Promise<number> {
  await using server = await startScriptedServer(script);
  await using upstream = createUpstream({ addresses: server.baseUrl, limits: { callsPerConnection: 1 } });
  const upstreamOptions = { upstream, timeoutMs: 5_000 };
  await using proxy = await startProxy("", [GreenhouseService.file], { upstreamOptions, ...options });
  return (await exchangeHttp2(proxy.address, request)).httpStatus;
}

test.each<{ name: string; request: typeof water | typeof watch; respond: Script["request"]; want: object }>(
  // oxfmt-ignore
  [
    { name: "a success", request: water, respond: (connection, id) => connection.send(...grpcResponse(id, watered)),
      want: { error: undefined, retries: 0 } },
    { name: "a gRPC error status", request: water,
      respond: (connection, id) => connection.send(...grpcResponse(id, watered, failed)),
      want: { error: { code: Code.NotFound, rawMessage: "no bed" }, retries: 0 } },
    { name: "a lost connection", request: water, respond: (connection) => connection.socket.destroy(),
      want: { error: { code: Code.Unavailable }, retries: 0 } },
    { name: "an incomplete message with the status OK", request: water,
      respond: (connection, id) => connection.send(...grpcResponse(id, watered.subarray(0, -1))),
      want: { error: { code: Code.Internal }, retries: 0 } },
    { name: "a stream reset after the first message", request: watch,
      respond: (connection, id) => connection.send(headersFrame(id, grpcHead), dataFrame(id, watered), resetFrame(id,
        2)), want: { error: { code: Code.Internal }, retries: 0 } },
    { name: "a retry", request: water,
      respond: (connection,
        id) => connection.send(...(connection.requests === 1 ? [resetFrame(id, 7)] : grpcResponse(id, watered))),
      want: { error: undefined, retries: 1 } },
    { name: "a stream", request: watch, respond: (connection, id) => connection.send(...grpcResponse(id, watered)),
      want: { error: undefined, retries: 0 } },
  ],
)("onUpstreamCall reports $name once, when the call ends", async ({ request, respond, want }) => {
  const { observer, calls, ends } = recorder();
  const codes: (Code | undefined)[] = [];
  const onResponse = ({ error }: CompletedRequest): void => void codes.push(error?.code);
  await send(respond === undefined ? {} : { request: respond }, request, { onUpstreamCall: observer, onResponse });
  // The access log and the callers' metrics record the same status.
  expect(codes).toEqual(ends.map(({ error }) => error?.code));
  expect(calls).toEqual([request === water ? "WaterBed" : "WatchReadings"]);
  expect(ends).toMatchObject([{ ...want, durationMs: expect.any(Number) }]);
});

test("the time in the queue is reported for calls that waited", async () => {
  const { observer, ends } = recorder();
  const held: (() => void)[] = [];
  await using server = await startScriptedServer({
    request: (connection, id) => held.push(() => connection.send(...grpcResponse(id, watered))),
  });
  const limits = { callsPerConnection: 1 };
  await using upstream = createUpstream({ addresses: server.baseUrl, connections: 1, limits });
  await using proxy = await startProxy("", [GreenhouseService.file], {
    upstreamOptions: { upstream },
    onUpstreamCall: observer,
  });
  const first = exchangeHttp2(proxy.address, water);
  await expect.poll(() => held.length).toBe(1);
  const second = exchangeHttp2(proxy.address, water);
  await expect.poll(() => upstream.load.waitingCalls).toBe(1);
  held[0]?.();
  await first;
  await expect.poll(() => held.length).toBe(2);
  const third = exchangeHttp2(proxy.address, water);
  held[1]?.();
  await second;
  await expect.poll(() => held.length).toBe(3);
  held[2]?.();
  await third;
  expect(ends.map(({ queuedMs }) => queuedMs > 0)).toEqual([true, true, expect.any(Boolean)]);
  expect(ends.every(({ queuedMs, durationMs }) => queuedMs <= durationMs)).toBe(true);
});

test.each<[name: string, onUpstreamCall: UpstreamCallObserver]>(
  // oxfmt-ignore
  [
    ["throws at the start of a call", () => {
        throw new Error("the meter is broken");
      }],
    ["throws at the end of a call", () => () => {
        throw new Error("the meter is broken");
      }],
  ],
)("an onUpstreamCall callback that %s is reported, and the call succeeds", async (_name, onUpstreamCall) => {
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(ConnectError.from(error).rawMessage);
  expect(await send(respondWatered, water, { onUpstreamCall, onFault })).toBe(200);
  expect(faults).toEqual(["the meter is broken"]);
});
