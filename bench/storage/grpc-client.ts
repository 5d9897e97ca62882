import { connect, type Socket } from "node:net";
import { percentilesOf } from "../../protoport/bench/load/load.ts";
import { benchToken } from "../servers/plants.ts";
import { scattered } from "./scattered.ts";

// A gRPC client that writes HTTP/2 frames itself, because a node:http2 client costs more than the server. The client
// deletes each plant once, in a scattered order, and prints its result as JSON. The client does not check the calls'
// status, because its caller counts the remaining plants.

/** This client's options, which are passed as an argument in JSON. */
export interface GrpcClientOptions {
  readonly port: number;
  readonly connections: number;
  /** Number of concurrent calls on a connection. */
  readonly streams: number;
  readonly durationS: number;
  readonly plants: number;
}

/** This client's result. */
export interface GrpcResult {
  readonly requests: number;
  readonly durationS: number;
  readonly latencyUs: { readonly p50: number; readonly p99: number };
}

// The frame types in RFC 9113 §6.
const frameType = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;
const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;
const frameHeaderBytes = 9;

const none = Buffer.alloc(0);

// The fields in HPACK's dynamic table (RFC 7541). The first request adds its fields to the peer's dynamic table, and
// later requests refer to these fields.
const fields = {
  ":path": "/plantstore.v1.PlantService/DeletePlant",
  ":authority": "127.0.0.1",
  "content-type": "application/grpc+proto",
  te: "trailers",
  authorization: `Bearer ${benchToken}`,
} as const;
// :method POST and :scheme http, from the static table.
const staticFields = Buffer.of(0x83, 0x86);
const dynamicTableStart = 62;
const fieldCount = Object.keys(fields).length;
const laterHeader = Buffer.concat([
  staticFields,
  Buffer.from(Object.keys(fields).map((_, i) => 0x80 | (dynamicTableStart + fieldCount - 1 - i))),
]);

const options: GrpcClientOptions = JSON.parse(process.argv[2] ?? "");
const ids = scattered(options.plants);
const latenciesUs: number[] = [];
const startedMs = performance.now();
const endMs = startedMs + options.durationS * 1_000;
await Promise.all(Array.from({ length: options.connections }, () => run(connect(options.port, "127.0.0.1"))));
const result: GrpcResult = {
  requests: latenciesUs.length,
  durationS: (performance.now() - startedMs) / 1_000,
  latencyUs: percentilesOf(Float64Array.from(latenciesUs)),
};
process.stdout.write(JSON.stringify(result));

/** Keeps some calls open on one connection, until the time is over or all plants are deleted. */
async function run(socket: Socket): Promise<void> {
  socket.setNoDelay(true);
  const startMs = new Map<number, number>();
  let stream = 1;
  const call = (): Buffer => {
    const { value: id, done } = performance.now() < endMs ? ids.next() : { value: 0n, done: true };
    if (done === true) return Buffer.alloc(0);
    const header = frame(frameType.headers, flag.endHeaders, stream, stream === 1 ? firstHeader() : laterHeader);
    const body = frame(frameType.data, flag.endStream, stream, messageOf(id));
    startMs.set(stream, performance.now());
    stream += 2;
    return Buffer.concat([header, body]);
  };
  const onFrame = (type: number, flags: number, id: number, payload: Buffer): Buffer => {
    const needsAck = type === frameType.settings || type === frameType.ping;
    if (needsAck)
      return (flags & flag.ack) === 0 ? frame(type, flag.ack, 0, type === frameType.ping ? payload : "") : none;
    if (type === frameType.goAway || type === frameType.reset) throw new Error(`frame of type ${String(type)}`);
    if ((flags & flag.endStream) === 0 || (type !== frameType.headers && type !== frameType.data)) return none;
    latenciesUs.push((performance.now() - (startMs.get(id) ?? 0)) * 1_000);
    startMs.delete(id);
    return call();
  };
  socket.write(Buffer.concat([preface(), ...Array.from({ length: options.streams }, call)]));
  let rest = none;
  for await (const chunk of socket) {
    rest = Buffer.concat([rest, chunk]);
    const output: Buffer[] = [];
    while (rest.length >= frameHeaderBytes && rest.length >= frameHeaderBytes + rest.readUIntBE(0, 3)) {
      const end = frameHeaderBytes + rest.readUIntBE(0, 3);
      const [type = 0, flags = 0] = rest.subarray(3, 5);
      output.push(onFrame(type, flags, rest.readUInt32BE(5), rest.subarray(frameHeaderBytes, end)));
      rest = rest.subarray(end);
    }
    socket.write(Buffer.concat(output));
    // The return leaves the loop, which closes the socket.
    if (startMs.size === 0) return;
  }
}

function preface(): Buffer {
  // SETTINGS_INITIAL_WINDOW_SIZE and the connection's window are large enough that no response waits for flow control.
  const settings = Buffer.from("00047fffffff", "hex");
  const window = Buffer.from("7fff0000", "hex");
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(frameType.settings, 0, 0, settings),
    frame(frameType.windowUpdate, 0, 0, window),
  ]);
}

function firstHeader(): Buffer {
  const literals = Object.entries(fields).map(([name, value]) =>
    Buffer.concat([Buffer.of(0x40, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]),
  );
  return Buffer.concat([staticFields, ...literals]);
}

/** Returns an envelope with DeletePlantRequest{id}. The bench's ids are positive. */
function messageOf(id: bigint): Buffer {
  const message = [0x08];
  for (let rest = id; ; rest >>= 7n) {
    const isLast = rest < 0x80n;
    message.push(Number(rest & 0x7fn) | (isLast ? 0 : 0x80));
    if (isLast) return Buffer.from([0, 0, 0, 0, message.length, ...message]);
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer | string): Buffer {
  const body = Buffer.from(payload);
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUIntBE(body.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, body]);
}
