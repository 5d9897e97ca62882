import { setTimeout as pause } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
// oxfmt-ignore
import { envelope, grpcHead, startScriptedServer, wateringOf, openGreenhouseClient, respondWatered
} from "@protoport/testing/proxy";
// oxfmt-ignore
import { clientOf, notServing, reports, reportsAndFails, service, serving, startWatchedServer, unhealthy
} from "../../../upstreams/watched-server.ts";
import { dataFrame, frameFlag, headersFrame, projectFolder, runProgram } from "@protoport/testing";
import { startRelay } from "../../../../../testing/src/http/relay.ts";

test("a reachable but unhealthy server is not reported as unreachable", async () => {
  const gone = await startScriptedServer({});
  await gone[Symbol.asyncDispose]();
  await using client = clientOf(gone.baseUrl);
  const problem = (): Promise<string> =>
    client.greenhouse.waterBed({}).then(String, (error: unknown) => ConnectError.from(error).rawMessage);
  expect(await problem()).toContain("cannot connect");
  const at = { host: "127.0.0.1", port: Number(new URL(gone.baseUrl).port) };
  await using server = await startWatchedServer(reports(notServing), undefined, at);
  await expect.poll(problem).toBe("no server is healthy");
  expect(server.watches).toBe(1);
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

const waitingProgram = `
  import { createClient } from "@connectrpc/connect";
  import { GreenhouseService } from "./protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
  import { createGrpcTransport, createUpstream } from "./protoport/proxy/src/client/index.ts";
  const { BASE_URL: addresses, SERVICE: healthService } = process.env;
  const upstream = createUpstream({ addresses, healthService, maxConnectionAgeMs: 3_600_000 });
  const { liters } = await createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream })).waterBed({});
  console.log(liters, process.getActiveResourcesInfo().filter((what) => what === "Timeout"));
`;

test("a waiting call keeps the process running, a health watch does not", async () => {
  await using server = await startWatchedServer(() => []);
  const options = { folder: projectFolder, environment: { BASE_URL: server.baseUrl, SERVICE: service } };
  const running = runProgram(process.execPath, ["--input-type=module", "-e", waitingProgram], options);
  await expect.poll(() => server.watches).toBe(1);
  // Long enough for the process to exit if nothing kept it alive.
  await pause(300);
  // The watch ends, so that the next watch is pending.
  server.send(reportsAndFails);
  const { exitCode, stdout, stderr } = await running;
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: "3 []\n", stderr: "" });
});

test("a frozen server gets calls only after it sends SETTINGS again", async () => {
  await using frozen = await startScriptedServer(respondWatered);
  await using relay = await startRelay({ address: "127.0.0.1", port: Number(new URL(frozen.baseUrl).port) });
  await using server = await startScriptedServer(respondWatered);
  await using client = openGreenhouseClient({ addresses: [relay.baseUrl, server.baseUrl], keepaliveMs: 200 });
  const call = (): Promise<string> => wateringOf(client);
  await expect.poll(async () => [await call(), client.upstream.load.connections]).toEqual(["ok", 2]);
  await expect.poll(async () => [await call(), frozen.requests > 0 && server.requests > 0]).toEqual(["ok", true]);
  relay.stall();
  // The first calls to the frozen server fail, because nothing shows yet that it is frozen.
  await expect
    .poll(async () => [await call(), client.upstream.load.connections].join(), { interval: 0 })
    .not.toBe("ok,2");
  const outcomes = new Set<string>();
  for (let i = 0; i < 50; i++) outcomes.add(await call());
  expect(outcomes).toEqual(new Set(["ok"]));
});
