import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { grpcHeader } from "../../test/support/carriers/grpc-frames.ts";
import {
  clientPreface,
  dataFrame,
  frame,
  frameBytes,
  frameFlag,
  frameType,
  headersFrame,
} from "../../test/support/carriers/http2-frames.ts";
import type { WaitingFigures } from "../figures.ts";
import { nextMessage } from "../running-server.ts";
import { benchToken } from "../servers/plants.ts";
import type { Said } from "./server.ts";

type Held = Extract<Said, { kind: "held" }>;

/** Calls that wait at the same time. */
const waitingCalls = 3_000;

/** Rounds of which the least counts: what else the process makes meanwhile, such as code, only adds to a call. */
const rounds = 5;

const program = fileURLToPath(new URL("server.ts", import.meta.url));

/** What one protocol needs to have calls wait. */
interface Caller {
  readonly name: string;
  readonly callsPerConnection: number;
  /**
   * What a connection sends before memory is measured: whatever is kept for as long as it is open, such as the fields
   * of its last request over HTTP/1.1, must not count as the memory of a call.
   */
  readonly opening: Buffer;
  /** A deletion; of the calls of one connection, the `at`th. */
  readonly call: (at: number) => Buffer;
}

const settings = frame(frameType.settings, 0, 0);
const acknowledged = frame(frameType.settings, frameFlag.ack, 0);
const header = [
  ...grpcHeader("/plantstore.v1.PlantService/DeletePlant"),
  ["authorization", `Bearer ${benchToken}`],
] as const;
// An envelope with DeletePlantRequest{id: 7}.
const message = Buffer.from([0, 0, 0, 0, 2, 8, 7]);

// A client sends the same fields with each request of its connection.
const restLines = `\r\nhost: x\r\nauthorization: Bearer ${benchToken}\r\n\r\n`;

const callers: readonly Caller[] = [
  {
    name: "REST, a connection each",
    callsPerConnection: 1,
    // The fields of the deletion, on a path where nothing waits for the store.
    opening: Buffer.from(`GET / HTTP/1.1${restLines}`),
    call: () => Buffer.from(`DELETE /plants/7 HTTP/1.1${restLines}`),
  },
  {
    name: "gRPC, 100 on a connection",
    callsPerConnection: 100,
    opening: Buffer.concat([clientPreface, frameBytes(settings), frameBytes(acknowledged)]),
    call: (at) =>
      Buffer.concat(
        [headersFrame(2 * at + 1, header), dataFrame(2 * at + 1, message, frameFlag.endStream)].map(frameBytes),
      ),
  },
];

/** Measures the least that a call holds while it waits for the store, over REST and over gRPC. */
export async function measureWaiting(): Promise<readonly WaitingFigures[]> {
  const seen: WaitingFigures[] = [];
  for (const caller of callers) {
    const child = fork(program, { execArgv: [] });
    const { port } = await nextMessage<Extract<Said, { kind: "listening" }>>(child, "listening");
    // Once before, for what is made only once.
    await measureCaller(child, port, caller);
    let callBytes = Infinity;
    for (let i = 0; i < rounds; i++) callBytes = Math.min(callBytes, await measureCaller(child, port, caller));
    child.disconnect();
    seen.push({ name: caller.name, callBytes });
  }
  return seen;
}

async function measureCaller(child: ChildProcess, port: number, caller: Caller): Promise<number> {
  const { callsPerConnection, opening, call } = caller;
  const connections = waitingCalls / callsPerConnection;
  const before = await held(child);
  const sockets: Socket[] = [];
  for (let i = 0; i < connections; i += 1) {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.resume().on("error", () => {});
    socket.write(opening);
    sockets.push(socket);
  }
  const open = await quiet(child);
  for (const socket of sockets)
    socket.write(Buffer.concat(Array.from({ length: callsPerConnection }, (_, at) => call(at))));
  let full = await held(child);
  while (full.waiting < before.waiting + waitingCalls - 1) full = await held(child);
  for (const socket of sockets) socket.destroy();
  return (full.bytes - open.bytes) / (full.waiting - before.waiting);
}

/** What is held once that does not change any more. */
async function quiet(child: ChildProcess): Promise<Held> {
  for (let last = await held(child), same = 0; ;) {
    const next = await held(child);
    same = Math.abs(next.bytes - last.bytes) < 10_000 ? same + 1 : 0;
    if (same === 3) return next;
    last = next;
  }
}

async function held(child: ChildProcess): Promise<Held> {
  child.send("held");
  return await nextMessage<Held>(child, "held");
}
