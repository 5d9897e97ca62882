import { setTimeout as pause } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { HealthCheckRequestSchema } from "../../../../../protobuf/src/gen/grpc/health/v1/health_pb.ts";
import {
  dataFrame,
  type Frame,
  frame,
  frameFlag,
  frameType,
  headersFrame,
} from "../../../../../testing/src/http/http2-frames.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { projectFolder, runProgram } from "../../../../../testing/src/process/child-program.ts";
import {
  type GreenhouseClient,
  openGreenhouse,
  watered,
  wateringOf,
} from "../../../../../testing/src/gateway/greenhouse-client.ts";
import {
  envelope,
  grpcResponse,
  grpcHead,
  type Script,
  type ScriptedConnection,
  type ScriptedServer,
  startScriptedServer,
} from "../../../../../testing/src/gateway/scripted-http2-server.ts";
import { settingFrame } from "../../../../../testing/src/http2/http2-requests.ts";
import { waitSomeTurns } from "../../../../../testing/src/wait-some-turns.ts";

// Servers get calls depending on the health that they report with grpc.health.v1.

const service = "greenhouse.v1.GreenhouseService";
const watchRequest = envelope(
  toBinary(HealthCheckRequestSchema, { $typeName: "grpc.health.v1.HealthCheckRequest", service }),
);

/** A `Watch` message, whose field 1 is its status. */
function status(value: number): Buffer {
  return envelope(Buffer.of(8, value));
}

const serving = status(1);
const notServing = status(2);

interface WatchedServer extends ScriptedServer {
  /** Sends frames on all watch streams. */
  send(frames: (streamId: number) => readonly Frame[]): void;
  readonly watches: number;
  readonly calls: number;
}

/** Starts a server that responds to a watch with these frames. */
async function startWatchedServer(
  first: (streamId: number) => readonly Frame[],
  opening?: readonly Frame[],
  at?: { readonly host: string; readonly port: number },
): Promise<WatchedServer> {
  const watches: (readonly [ScriptedConnection, number])[] = [];
  const watchStreams = new Set<string>();
  let calls = 0;
  const script: Script = {
    ...(opening && { opening }),
    frame: ({ index }, { type, streamId, payload }) => {
      if (type === frameType.data && payload.equals(watchRequest)) watchStreams.add(`${index} ${streamId}`);
    },
    request: (connection, id) => {
      if (watchStreams.has(`${connection.index} ${id}`)) {
        watches.push([connection, id]);
        connection.send(...first(id));
      } else {
        calls++;
        connection.send(...grpcResponse(id, watered));
      }
    },
  };
  const server = await startScriptedServer(script, at);
  return Object.defineProperties(Object.create(server), {
    watches: { get: () => watches.length },
    calls: { get: () => calls },
    send: {
      value: (frames: (streamId: number) => readonly Frame[]) => {
        for (const [connection, id] of watches) connection.send(...frames(id));
      },
    },
  });
}

function reports(...messages: readonly Uint8Array[]): (streamId: number) => readonly Frame[] {
  return (id) => [headersFrame(id, grpcHead), ...messages.map((message) => dataFrame(id, message))];
}

function endsWith(code: string): (streamId: number) => readonly Frame[] {
  return (id) => [headersFrame(id, [...grpcHead, ["grpc-status", code]], frameFlag.endStream)];
}

/** Reports SERVING, and ends the stream in the middle of the next message. */
function reportsAndFails(id: number): readonly Frame[] {
  return [
    ...reports(serving, serving.subarray(0, 6))(id),
    headersFrame(id, [["grpc-status", "14"]], frameFlag.endStream),
  ];
}

function clientOf(...addresses: readonly string[]): GreenhouseClient {
  return openGreenhouse({ addresses, healthService: service });
}

/** SERVING with an unknown field that has this size in bytes. */
function servingIn(bytes: number): Buffer {
  const rest = Buffer.alloc(bytes - 5);
  return envelope(Buffer.concat([Buffer.of(8, 1, 0x7a, (rest.byteLength & 0x7f) | 0x80, rest.byteLength >> 7), rest]));
}

const unhealthy = "Unavailable: no server is healthy";

test("a reachable but unhealthy server is not reported as unreachable", async () => {
  const gone = await startScriptedServer({});
  await gone[Symbol.asyncDispose]();
  await using client = clientOf(gone.baseUrl);
  const problem = (): Promise<string> =>
    client.greenhouse.waterBed({}).then(
      () => "ok",
      (error: unknown) => ConnectError.from(error).rawMessage,
    );
  expect(await problem()).toContain("cannot connect");
  const at = { host: "127.0.0.1", port: Number(new URL(gone.baseUrl).port) };
  await using server = await startWatchedServer(reports(notServing), undefined, at);
  await expect.poll(problem).toBe("no server is healthy");
  expect(server.watches).toBe(1);
});

test.each([
  { name: "reports SERVING gets calls", first: reports(serving), want: "ok" },
  { name: "reports NOT_SERVING gets no calls", first: reports(notServing), want: unhealthy },
  { name: "reports SERVICE_UNKNOWN gets no calls", first: reports(status(3)), want: unhealthy },
  { name: "sends an empty health message gets no calls", first: reports(envelope(Buffer.alloc(0))), want: unhealthy },
  { name: "reports SERVING with an unknown field gets calls", first: reports(servingIn(1_024)), want: "ok" },
  { name: "does not implement grpc.health.v1 gets calls", first: endsWith("12"), want: "ok" },
  {
    name: "responds UNIMPLEMENTED in a trailer gets calls",
    first: (id: number) => [headersFrame(id, grpcHead), headersFrame(id, [["grpc-status", "12"]], frameFlag.endStream)],
    want: "ok",
  },
  {
    name: "responds 404 to the health watch gets calls",
    first: (id: number) => [headersFrame(id, [[":status", "404"]], frameFlag.endStream)],
    want: "ok",
  },
  {
    name: "responds 404 with a text to the health watch gets calls",
    first: (id: number) => [headersFrame(id, [[":status", "404"]]), dataFrame(id, Buffer.from("404 page not found"))],
    want: "ok",
    resets: 1,
  },
  {
    name: "sends GOAWAY gets no calls",
    first: () => [frame(frameType.goAway, 0, 0, Buffer.of(0, 0, 0, 0, 0, 0, 0, 11))],
    want: expect.stringMatching(/: the server did not respond with HTTP\/2 \(ENHANCE_YOUR_CALM\)$/),
  },
  { name: "responds PERMISSION_DENIED to the health watch gets no calls", first: endsWith("7"), want: unhealthy },
  {
    name: "sends an invalid health message gets no calls",
    first: reports(Buffer.of(0, 0, 0, 0, 2, 0xff, 0xff)),
    want: unhealthy,
    resets: 1,
  },
  {
    name: "sends a health message above the limit gets no calls",
    first: reports(servingIn(1_025)),
    want: unhealthy,
    resets: 1,
  },
  {
    name: "compresses its health message gets no calls",
    first: reports(envelope(Buffer.of(8, 1), 1)),
    want: unhealthy,
    resets: 1,
  },
  {
    name: "splits SERVING into two DATA frames gets calls",
    first: (id: number) => [
      headersFrame(id, grpcHead),
      dataFrame(id, serving.subarray(0, 6)),
      dataFrame(id, serving.subarray(6)),
    ],
    want: "ok",
  },
  {
    name: "responds to the health watch with HTML gets no calls",
    first: (id: number) => [
      headersFrame(id, [
        [":status", "503"],
        ["content-type", "text/html"],
      ]),
    ],
    want: unhealthy,
    resets: 1,
  },
  {
    name: "reports NOT_SERVING but allows only one stream gets calls",
    first: reports(notServing),
    opening: [settingFrame(3, 1)],
    want: "ok",
  },
  {
    name: "reports NOT_SERVING and allows two streams gets no calls",
    first: reports(notServing),
    opening: [settingFrame(3, 2)],
    want: unhealthy,
  },
])("a server that $name", async ({ first, opening, want, resets = 0 }) => {
  await using server = await startWatchedServer(first, opening);
  await using client = clientOf(server.baseUrl);
  expect(await wateringOf(client)).toEqual(want);
  expect(server.calls).toBe(want === "ok" ? 1 : 0);
  expect(client.upstream.ready).toBe(want === "ok");
  expect(client.upstream.load.calls).toBe(0);
  await expect.poll(() => server.frames.filter(({ type }) => type === frameType.resetStream).length).toBe(resets);
});

test("calls go only to healthy servers as the reported health changes", async () => {
  await using one = await startWatchedServer(reports(serving));
  await using other = await startWatchedServer(reports(notServing));
  await using client = clientOf(one.baseUrl, other.baseUrl);
  for (let i = 0; i < 20; i++) expect(await wateringOf(client)).toBe("ok");
  expect(other.calls).toBe(0);
  await expect.poll(() => other.watches).toBe(1);

  other.send((id) => [dataFrame(id, serving)]);
  await within(
    (async () => {
      while (other.calls === 0) await wateringOf(client);
    })(),
    "a call to the server that is healthy now",
  );
  one.send((id) => [dataFrame(id, notServing)]);
  await expect
    .poll(async () => {
      const before = one.calls;
      await Promise.all(Array.from({ length: 10 }, () => wateringOf(client)));
      return one.calls - before;
    })
    .toBe(0);
  expect({ one: one.watches, other: other.watches }).toEqual({ one: 1, other: 1 });
});

test("a health watch that fails after a report restarts without growing backoff", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  // After this many watches without a message, the backoff would be a minute.
  const broken = 10;
  let watches = 0;
  await using server = await startWatchedServer((id) => {
    // Longer than a backoff of 1 s ±20 %.
    vi.advanceTimersByTime(1_250);
    return watches++ < broken ? reportsAndFails(id) : reports(serving)(id);
  });
  await using client = clientOf(server.baseUrl);
  await expect.poll(async () => [await wateringOf(client), watches]).toEqual(["ok", broken + 1]);
  expect(server.connections).toBe(1);
});

test("each health watch that ends with an invalid message is repeated once", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const invalid = 3;
  await using server = await startWatchedServer((id) => {
    // More than the third wait, and less than any connection timeout.
    vi.advanceTimersByTime(4_000);
    if (server.watches > invalid) return reports(serving)(id);
    return [headersFrame(id, grpcHead), dataFrame(id, envelope(Buffer.of(8, 1), 1), frameFlag.endStream)];
  });
  await using client = clientOf(server.baseUrl);
  await expect.poll(async () => [await wateringOf(client), server.watches]).toEqual(["ok", invalid + 1]);
  await pause(100);
  expect(server.watches).toBe(invalid + 1);
});

test("many health reports do not exhaust the flow-control window", async () => {
  await using server = await startWatchedServer(reports(serving));
  await using client = clientOf(server.baseUrl);
  expect(await wateringOf(client)).toBe("ok");
  // 280,000 bytes, more than a stream's window.
  for (let i = 0; i < 40; i++) {
    server.send((id) => [dataFrame(id, Buffer.concat(Array.from({ length: 1_000 }, () => serving)))]);
    expect(await wateringOf(client)).toBe("ok");
  }
  server.send((id) => [dataFrame(id, notServing)]);
  await expect.poll(() => wateringOf(client)).toBe(unhealthy);
  expect({ watches: server.watches, connections: server.connections }).toEqual({ watches: 1, connections: 1 });
});

test("an upstream with a health watch closes immediately", async () => {
  await using server = await startWatchedServer(reports(serving));
  const client = clientOf(server.baseUrl);
  await wateringOf(client);
  await within(client.upstream.close(), "the end", 5_000);
  await expect.poll(() => server.open).toBe(0);
  expect(server.frames.at(-1)?.type).toBe(frameType.goAway);
});

test("a connection with only a health watch is closed as idle", async () => {
  await using server = await startWatchedServer(reports(serving));
  const options = { healthService: service, limits: { idleTimeoutMs: 50 } };
  await using client = openGreenhouse({ addresses: server.baseUrl, ...options });
  expect(await wateringOf(client)).toBe("ok");
  await expect.poll(() => server.open).toBe(0);
  expect(await wateringOf(client)).toBe("ok");
  expect({ watches: server.watches, connections: server.connections }).toEqual({ watches: 2, connections: 2 });
});

const waitingProgram = `
  import { createClient } from "@connectrpc/connect";
  import { GreenhouseService } from "./examples/gen/greenhouse/v1/greenhouse_pb.ts";
  import { createGrpcTransport, createUpstream } from "./packages/proxy/src/client/index.ts";
  const { BASE_URL: addresses, SERVICE: healthService } = process.env;
  const upstream = createUpstream({ addresses, healthService, maxConnectionAgeMs: 3_600_000 });
  const { liters } = await createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream })).waterBed({});
  console.log(liters, process.getActiveResourcesInfo().filter((what) => what === "Timeout"));
`;

test("a waiting call keeps the process running, a health watch does not", async () => {
  await using server = await startWatchedServer(() => []);
  const running = runProgram(process.execPath, ["--input-type=module", "-e", waitingProgram], {
    folder: projectFolder,
    environment: { BASE_URL: server.baseUrl, SERVICE: service },
  });
  await expect.poll(() => server.watches).toBe(1);
  // Long enough for the process to exit if nothing kept it alive.
  await pause(300);
  // The watch ends, so that the next watch is pending.
  server.send(reportsAndFails);
  const { exitCode, stdout, stderr } = await running;
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: "3 []\n", stderr: "" });
});

test("a failed health watch is repeated after a second, not earlier", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  // Simulates a process that has run for a while.
  vi.advanceTimersByTime(60_000);
  await using server = await startWatchedServer(endsWith("7"));
  await using client = clientOf(server.baseUrl);
  expect(await wateringOf(client)).toBe(unhealthy);
  vi.advanceTimersByTime(750);
  await waitSomeTurns();
  expect(server.watches).toBe(1);
  vi.advanceTimersByTime(500);
  await expect.poll(() => server.watches).toBe(2);
});

test("a failed health watch is repeated only when a stream is available", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await using server = await startWatchedServer((id) => [settingFrame(3, 0), ...endsWith("14")(id)]);
  await using client = clientOf(server.baseUrl);
  expect(await wateringOf(client)).toBe(unhealthy);
  vi.advanceTimersByTime(1_250);
  await waitSomeTurns();
  expect(server.watches).toBe(1);
  server.send(() => [settingFrame(3, 100)]);
  await expect
    .poll(() => {
      vi.advanceTimersByTime(2_000);
      return server.watches;
    })
    .toBe(2);
});
