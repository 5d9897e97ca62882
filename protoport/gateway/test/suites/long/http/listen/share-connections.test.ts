import { type ChildProcess, fork, spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { type BindOptions, type ListenOptions, shareConnections, type SharedPort } from "../../../../../src/index.ts";
import type { WorkerMessage } from "../../../../../src/http/listen/share-connections.ts";
import { getReadingProcedure } from "../../../../../../testing/src/gateway/greenhouse.ts";
import { isNodeEngine } from "../../../../../../testing/src/gateway/test-engine.ts";
import { createCertificate } from "../../../../../../testing/src/http/certificate.ts";
import { within } from "../../../../../../testing/src/deadline.ts";
import { runProgram } from "../../../../../../testing/src/process/child-program.ts";
import { createTempFolder } from "../../../../../../testing/src/process/temp-folder.ts";

const program = join(import.meta.dirname, "../../../../../../testing/src/gateway/shared-greenhouse.ts");

/** Resolves to a worker's next message that is a string. The gateway's messages are not strings. */
function nextText(worker: ChildProcess): Promise<string> {
  const text = new Promise<string>((resolve) => {
    worker.on("message", (message) => {
      if (typeof message === "string") resolve(message);
    });
  });
  return within(text, "a message of a worker");
}

/** Resolves when the port has been notified that this many of a worker's connections have closed. */
function closings(worker: ChildProcess, count: number): Promise<void> {
  let closed = 0;
  const counted = new Promise<void>((resolve) => {
    worker.on("message", (message: WorkerMessage | string) => {
      if (typeof message !== "object" || message.gateway !== "closed") return;
      closed += message.connections;
      if (closed >= count) resolve();
    });
  });
  return within(counted, "the end of connections");
}

async function share(options: BindOptions = {}): Promise<SharedPort> {
  const shared = await shareConnections(options);
  onTestFinished(async () => {
    await within(shared.drain(), "the end of a shared port");
  });
  return shared;
}

/** Starts a process, and resolves when it accepts connections. */
async function startWorker(shared: SharedPort, options: ListenOptions = {}): Promise<ChildProcess> {
  const worker = fork(program, { env: { ...process.env, LISTEN_OPTIONS: JSON.stringify(options) } });
  await handTo(shared, worker);
  return worker;
}

async function handTo(shared: SharedPort, worker: ChildProcess): Promise<void> {
  onTestFinished(async () => {
    if (worker.exitCode !== null || worker.signalCode !== null) return;
    const ended = once(worker, "exit");
    worker.kill("SIGKILL");
    await within(ended, "the end of a worker");
  });
  shared.handTo(worker);
  expect(await nextText(worker)).toBe("listening");
}

const request = "GET /sensors/any/reading HTTP/1.1\r\nhost: a\r\n\r\n";

/** Resolves to the process that serves a connection's next request, or to how the connection closed. */
async function ask(socket: Socket): Promise<number | string> {
  socket.write(request);
  return await answererOf(socket);
}

async function answererOf(socket: Socket): Promise<number | string> {
  const response = new Promise<number | string>((resolve) => {
    let text = "";
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      const pid = /"sensor":"(\d+)"/.exec(text)?.[1];
      if (pid !== undefined) resolve(Number(pid));
    });
    socket.once("close", () => resolve("closed"));
    socket.once("error", (error) => resolve(error.message));
  });
  return await within(response, "a response");
}

/** Opens a connection, which may have to wait for a worker. */
function open({ address, port }: SharedPort): Socket {
  const socket = port === 0 ? connect(address) : connect(port, address);
  onTestFinished(() => void socket.destroy());
  return socket;
}

async function openMany(shared: SharedPort, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => open(shared));
  await Promise.all(sockets.map((socket) => within(once(socket, "connect"), "a connection")));
  return sockets;
}

/** Counts each process's responses. */
function countsOf(answers: readonly unknown[]): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const response of answers) counts.set(response, (counts.get(response) ?? 0) + 1);
  return counts;
}

async function openGrpc({ address, port }: SharedPort): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://${address}:${port}`);
  onTestFinished(() => session.destroy());
  await within(once(session, "remoteSettings"), "the settings of a server");
  return session;
}

/** Resolves to the process that serves a call on a connection. */
async function call(session: ClientHttp2Session): Promise<number> {
  const stream = session.request({
    ":method": "POST",
    ":path": getReadingProcedure,
    "content-type": "application/grpc+json",
    te: "trailers",
  });
  stream.end(Buffer.from("\0\0\0\0\x02{}"));
  let text = "";
  stream.setEncoding("latin1").on("data", (piece: string) => (text += piece));
  await within(once(stream, "close"), "the end of a call");
  return Number(/"sensor":"(\d+)"/.exec(text)?.[1]);
}

test("8 long-lived gRPC connections and 1,000 HTTP/1.1 connections are distributed evenly", async () => {
  const shared = await share();
  const workers = [await startWorker(shared), await startWorker(shared)];
  const pids = workers.map(({ pid }) => pid);
  const sessions = await Promise.all(Array.from({ length: 8 }, () => openGrpc(shared)));
  expect(countsOf(await Promise.all(sessions.map(call)))).toEqual(new Map(pids.map((pid) => [pid, 4])));
  const sockets = await openMany(shared, 1000);
  expect(countsOf(await Promise.all(sockets.map(ask)))).toEqual(new Map(pids.map((pid) => [pid, 500])));
});

test("the process with the fewest connections gets the next connection", async () => {
  const shared = await share();
  const [first, second] = [await startWorker(shared), await startWorker(shared)];
  const sockets = await openMany(shared, 4);
  const answerers = await Promise.all(sockets.map(ask));
  expect(countsOf(answerers)).toEqual(new Map([first, second].map(({ pid }) => [pid, 2])));
  const closed = closings(first, 2);
  for (const [index, socket] of sockets.entries()) if (answerers[index] === first.pid) socket.destroy();
  await closed;
  const next: { readonly socket: Socket; readonly pid: number | string }[] = [];
  while (next.length < 3) {
    const socket = open(shared);
    next.push({ socket, pid: await ask(socket) });
  }
  expect(next.map(({ pid }) => pid)).toEqual([first.pid, first.pid, second.pid]);
  // The process reports later closings, too.
  const closedAgain = closings(first, 2);
  for (const { socket, pid } of next) if (pid === first.pid) socket.destroy();
  await closedAgain;
  const last = [await ask(open(shared)), await ask(open(shared)), await ask(open(shared))];
  expect(last).toEqual([first.pid, first.pid, first.pid]);
});

test("connections are queued until the first process starts", async () => {
  const shared = await share();
  const [socket] = await openMany(shared, 1);
  socket?.write(request);
  const worker = await startWorker(shared);
  expect(socket && (await answererOf(socket))).toBe(worker.pid);
  // The connection was not passed to the next worker as well, which therefore has none.
  const next = await startWorker(shared);
  expect(await ask(open(shared))).toBe(next.pid);
});

test("at most 1,024 connections are queued while there is no process", async () => {
  const shared = await share();
  let accepted = 0;
  const count = (): void => void accepted++;
  subscribe("net.server.socket", count);
  onTestFinished(() => void unsubscribe("net.server.socket", count));
  const sockets: Socket[] = [];
  // A client is connected as soon as it is in the port's queue, which holds 511.
  while (sockets.length < 1_030) {
    sockets.push(...(await openMany(shared, 103)));
    await expect.poll(() => accepted).toBe(sockets.length);
  }
  // Only a connection that is read reports its end.
  for (const socket of sockets) socket.resume();
  const closed = (): number => sockets.filter((socket) => socket.closed).length;
  await expect.poll(closed).toBe(6);
  expect(await ask(open(shared))).toMatch(/ECONNRESET|EPIPE|closed/);
  expect(closed()).toBe(6);
  await within(shared.drain(), "the end of the port");
  await expect.poll(closed).toBe(sockets.length);
});

test("another process serves connections that a killed process has not confirmed", async () => {
  const shared = await share();
  const [stuck, other] = [await startWorker(shared), await startWorker(shared)];
  stuck.kill("SIGSTOP");
  const sockets = await openMany(shared, 6);
  const answers = sockets.map(ask);
  expect(await Promise.race(answers)).toBe(other.pid);
  stuck.kill("SIGKILL");
  expect(countsOf(await Promise.all(answers))).toEqual(new Map([[other.pid, 6]]));
});

test("a running process whose channel has closed gets no more connections", async () => {
  const shared = await share();
  const [cut, other] = [await startWorker(shared), await startWorker(shared)];
  // Keeps the process running.
  cut.kill("SIGSTOP");
  const closed = once(cut, "disconnect");
  cut.disconnect();
  await within(closed, "the end of a channel");
  const sockets = await openMany(shared, 4);
  expect(countsOf(await Promise.all(sockets.map(ask)))).toEqual(new Map([[other.pid, 4]]));
});

test("another process serves connections that were sent to a draining process", async () => {
  const shared = await share();
  const leaving = await startWorker(shared);
  const other = await startWorker(shared);
  leaving.send("drain at the next");
  const ended = once(leaving, "exit");
  const sockets = await openMany(shared, 4);
  expect(countsOf(await Promise.all(sockets.map(ask)))).toEqual(new Map([[other.pid, 4]]));
  expect(await within(ended, "the end of a drain")).toEqual([0, null]);
});

test("one other process gets a connection that a draining process refuses", async () => {
  const shared = await share();
  const [leaving, first, second] = [await startWorker(shared), await startWorker(shared), await startWorker(shared)];
  for (const worker of [first, second]) worker.kill("SIGSTOP");
  leaving.send("drain at the next");
  const ended = Promise.all([once(leaving, "exit"), once(leaving, "disconnect")]);
  const [socket] = await openMany(shared, 1);
  await within(ended, "the end of a process and its channel");
  for (const worker of [first, second]) worker.kill("SIGCONT");
  expect(socket && (await ask(socket))).toBe(first.pid);
  // The second process has no connection, and therefore gets the next.
  expect(await ask(open(shared))).toBe(second.pid);
});

test("a draining process finishes its connections, and exits", async () => {
  const shared = await share();
  const old = await startWorker(shared);
  const session = await openGrpc(shared);
  const fresh = await startWorker(shared);
  const stream = session.request({
    ":method": "POST",
    ":path": getReadingProcedure,
    "content-type": "application/grpc+json",
    te: "trailers",
  });
  stream.write(Buffer.from("\0\0\0"));
  expect(await call(session)).toBe(old.pid);
  old.send("drain");
  await within(once(session, "goaway"), "a GOAWAY");
  const sockets = await openMany(shared, 3);
  expect(countsOf(await Promise.all(sockets.map(ask)))).toEqual(new Map([[fresh.pid, 3]]));
  stream.end(Buffer.from("\0\x02{}"));
  let text = "";
  stream.setEncoding("latin1").on("data", (piece: string) => (text += piece));
  await within(once(stream, "close"), "the end of a call");
  expect(text).toContain(`"sensor":"${old.pid}"`);
  session.close();
  expect(await within(once(old, "exit"), "the end of a process")).toEqual([0, null]);
});

test.each(["a port", "a Unix socket"])(
  "a process reads from a connection to %s only after confirming it",
  async (name) => {
    using folder = createTempFolder();
    const shared = await share(name === "a port" ? {} : { path: folder.file("socket") });
    const worker = await startWorker(shared);
    worker.send("fill at the next");
    expect(await ask(open(shared))).toMatch(/ECONNRESET|EPIPE|closed/);
    // The port continues with the next connection.
    expect(await ask(open(shared))).toBe(worker.pid);
  },
);

test("a connection is closed if its process has no free file descriptor", async () => {
  const shared = await share();
  const limited = spawn("sh", ["-c", 'ulimit -n 64; exec "$0" "$1"', process.execPath, program], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await handTo(shared, limited);
  const sockets = await openMany(shared, 80);
  const filesOf = (): number => readdirSync(`/proc/${String(limited.pid)}/fd`).length;
  await expect.poll(filesOf).toBeGreaterThanOrEqual(64);
  const outcomes: (number | string)[] = [];
  const answers = sockets.map(async (socket) => void outcomes.push(await ask(socket)));
  // Each connection that closes frees a file descriptor for another.
  await expect
    .poll(() => {
      for (const socket of sockets) if (socket.bytesRead > 0) socket.destroy();
      open(shared).on("error", () => {});
      return outcomes.length;
    })
    .toBe(80);
  await Promise.all(answers);
  expect(outcomes).toContain(limited.pid);
  expect(outcomes.filter((outcome) => outcome !== limited.pid)).not.toEqual([]);
});

test("each process terminates TLS", async () => {
  const { cert, key } = createCertificate("shared");
  const shared = await share();
  const worker = await startWorker(shared, { tls: { cert, key }, allowCleartext: true });
  const secure = connectTls({ port: shared.port, host: shared.address, ca: cert });
  onTestFinished(() => void secure.destroy());
  expect(await ask(secure)).toBe(worker.pid);
});

test("a process responds to a client that half-closes", async () => {
  const shared = await share();
  const worker = await startWorker(shared);
  const halfOpen = open(shared);
  halfOpen.end(request.replace("any", "late"));
  expect(await answererOf(halfOpen)).toBe(isNodeEngine ? "closed" : worker.pid);
});

test("a shared Unix socket accepts the PROXY header", async () => {
  using folder = createTempFolder();
  const shared = await share({ path: folder.file("socket") });
  const worker = await startWorker(shared, { proxyProtocol: true });
  const socket = open(shared);
  socket.write("PROXY TCP4 192.0.2.1 192.0.2.2 1024 80\r\n");
  expect(await ask(socket)).toBe(worker.pid);
});

test("a shared port is closed after the last process exits", async () => {
  const shared = await share();
  const [first, last] = [await startWorker(shared), await startWorker(shared)];
  const drained = shared.drain();
  first.send("drain");
  await within(once(first, "exit"), "the end of the first");
  expect(await ask(open(shared))).toBe(last.pid);
  last.send("drain");
  await within(drained, "the end of the port");
  expect(await ask(open(shared))).toMatch("ECONNREFUSED");
});

test("each call of drain resolves when the last process has left", async () => {
  const shared = await share();
  const worker = await startWorker(shared);
  const calls = [shared.drain(), shared.drain()];
  worker.send("drain");
  await within(Promise.all(calls), "the end of both calls");
});

test("a process serves connections after an earlier listen() call has failed", async () => {
  const shared = await share();
  const env = { ...process.env, REFUSED_LISTEN_OPTIONS: JSON.stringify({ maxConnectionAgeMs: -1 }) };
  const worker = fork(program, { env });
  await handTo(shared, worker);
  expect(await ask(open(shared))).toBe(worker.pid);
});

test("listen() rejects when the gateway is drained before handTo()", async () => {
  const worker = fork(program, { stdio: ["ignore", "inherit", "pipe", "ipc"] });
  let stderr = "";
  worker.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  worker.send("drain");
  expect(await within(once(worker, "close"), "the end of a worker")).toEqual([1, null]);
  expect(stderr).toContain("the gateway was drained and cannot listen again");
});

test("handedOver fails without a parent process", async () => {
  const { exitCode, stderr } = await runProgram(process.execPath, [program]);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/handedOver requires a process started with child_process\.fork\(\)[^]*code: 'ERR_OPTIONS'/);
});
