import { spawn } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import type { BoundAddress, ListenOptions } from "../../../../src/index.ts";
import { createCertificate, createTempFolder, getReadingProcedure, projectFolder, within } from "@protoport/testing";

type ListeningWorker = { readonly worker: Worker; readonly pid: number | undefined; readonly at: BoundAddress };

async function startWorker(options: ListenOptions = {}): Promise<ListeningWorker> {
  const exec = join(projectFolder, "protoport/testing/src/gateway/cluster-greenhouse.ts");
  cluster.setupPrimary({ exec, args: [], execArgv: [] });
  const worker = cluster.fork({ LISTEN_OPTIONS: JSON.stringify(options) });
  onTestFinished(async () => {
    if (worker.isDead()) return;
    const exited = once(worker, "exit");
    worker.process.kill("SIGKILL");
    await within(exited, "the end of a worker");
  });
  const [at] = await within(once(worker, "message"), "a worker");
  return { worker, pid: worker.process.pid, at };
}

async function startTwo(options: ListenOptions = {}): Promise<[ListeningWorker, ListeningWorker]> {
  return [await startWorker(options), await startWorker(options)];
}

const request = "GET /sensors/any/reading HTTP/1.1\r\nhost: a\r\n\r\n";

/** Opens a connection, and closes the connection when the test ends. */
function open({ address, port }: BoundAddress): Socket {
  const socket = port === 0 ? connect(address) : connect(port, address);
  onTestFinished(() => void socket.destroy());
  return socket;
}

async function ask(socket: Socket, text: string = request): Promise<number | string> {
  const response = new Promise<number | string>((resolve) => {
    let received = "";
    socket.on("data", (bytes: Buffer) => {
      received += bytes.toString("latin1");
      const pid = /"sensor":"(\d+)"/.exec(received)?.[1];
      if (pid !== undefined) resolve(Number(pid));
    });
    socket.once("close", () => resolve("closed"));
    socket.once("error", (error) => resolve(error.message));
  });
  socket.write(text);
  return await within(response, "a response");
}

async function askMany(at: BoundAddress, count: number, text?: string): Promise<(number | string)[]> {
  const pids: (number | string)[] = [];
  while (pids.length < count) pids.push(await ask(open(at), text));
  return pids;
}

const ofProxy = "PROXY TCP4 192.0.2.1 192.0.2.2 1024 80\r\n";

test.each([
  { name: "an IPv4 port", options: {} },
  { name: "an IPv6 port", options: { host: "::1" } },
  { name: "a Unix socket", options: { path: "socket" } },
  { name: "a Unix socket with the PROXY header", options: { path: "socket", proxyProtocol: true }, header: ofProxy },
])("workers get the connections to $name in turn", async ({ options, header = "" }) => {
  using folder = createTempFolder();
  const workers = await startTwo({ ...options, ...("path" in options ? { path: folder.file(options.path) } : {}) });
  const [{ at }, { at: same }] = workers;
  expect(same).toEqual(at);
  const pids = await askMany(at, 4, header + request);
  expect(new Set(pids.slice(0, 2))).toEqual(new Set(workers.map(({ pid }) => pid)));
  expect(pids.slice(2)).toEqual(pids.slice(0, 2));
});

test("workers get long-lived gRPC connections in turn", async () => {
  const workers = await startTwo();
  const [{ at }] = workers;
  const pids: number[] = [];
  for (let count = 0; count < 8; count++) {
    const session = connectHttp2(`http://${at.address}:${at.port}`);
    onTestFinished(() => session.destroy());
    const path = { ":method": "POST", ":path": getReadingProcedure };
    const stream = session.request({ ...path, "content-type": "application/grpc+json", te: "trailers" });
    stream.end(Buffer.from("\0\0\0\0\x02{}"));
    let text = "";
    stream.setEncoding("latin1").on("data", (piece: string) => (text += piece));
    await within(once(stream, "close"), "the end of a call");
    pids.push(Number(/"sensor":"(\d+)"/.exec(text)?.[1]));
  }
  expect(workers.map(({ pid }) => pids.filter((one) => one === pid).length)).toEqual([4, 4]);
});

test("each worker terminates TLS", async () => {
  const { cert, key } = createCertificate("cluster");
  const workers = await startTwo({ tls: { cert, key } });
  const [{ at }] = workers;
  const sockets = workers.map(() => connectTls({ port: at.port, host: at.address, ca: cert }));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  const pids = await Promise.all(sockets.map((socket) => ask(socket)));
  expect(new Set(pids)).toEqual(new Set(workers.map(({ pid }) => pid)));
});

test("a worker responds to a client that half-closes", async () => {
  const { at, pid } = await startWorker();
  const socket = open(at);
  const response = ask(socket, request.replace("any", "late"));
  socket.end();
  expect(await response).toBe(pid);
});

test("a draining worker finishes its calls and exits with 0, and the others get its connections", async () => {
  const [leaving, other] = await startTwo();
  const socket = open(leaving.at);
  const response = ask(socket, request.replace("any", "late"));
  await within(once(socket, "connect"), "a connection");
  const exited = once(leaving.worker, "exit");
  leaving.worker.send("drain");
  expect([leaving.pid, other.pid]).toContain(await response);
  expect(await within(exited, "the end of a worker")).toEqual([0, null]);
  expect(await askMany(leaving.at, 3)).toEqual([other.pid, other.pid, other.pid]);
});

test("a killed worker leaves the port to the others, and its replacement shares the port", async () => {
  const [killed, other] = await startTwo({ port: 0 });
  const exited = once(killed.worker, "exit");
  killed.worker.process.kill("SIGKILL");
  await within(exited, "the end of a worker");
  expect(await askMany(killed.at, 2)).toEqual([other.pid, other.pid]);
  const next = await startWorker({ port: 0 });
  expect([next.at, new Set(await askMany(next.at, 2))]).toEqual([killed.at, new Set([other.pid, next.pid])]);
});

test("the port closes with the last worker", async () => {
  using folder = createTempFolder();
  for (const options of [{}, { path: folder.file("socket") }]) {
    const { at, worker } = await startWorker(options);
    const exited = once(worker, "exit");
    worker.send("drain");
    await within(exited, "the end of a worker");
    expect(await ask(open(at))).toMatch(/ECONNREFUSED|ENOENT/);
  }
});

test("a worker replaces the socket of a killed process", async () => {
  using folder = createTempFolder();
  const path = folder.file("socket");
  const listen = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  await within(once(spawn(process.execPath, ["-e", listen]), "exit"), "the end of a process");
  expect(existsSync(path)).toBe(true);
  const { at, pid } = await startWorker({ path });
  expect(await ask(open(at))).toBe(pid);
});
