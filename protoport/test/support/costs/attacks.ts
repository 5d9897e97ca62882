import { setImmediate as nextTurn } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { WatchReadingsRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { encodeEnvelope } from "../../../testing/src/gateway/envelope.ts";
import type { Address, Field } from "../../../testing/src/http/exchange.ts";
import { grpcHeader } from "../../../testing/src/http/grpc-frames.ts";
// oxfmt-ignore
import { dataFrame, type Frame, frame, frameBytes, frameFlag, frameType, headersFrame, resetFrame
} from "../../../testing/src/http/http2-frames.ts";
import { settingFrame, windowUpdateFrame } from "../../../testing/src/http2/http2-requests.ts";
import type { MeasuredServer } from "./measured-server.ts";
import { openRawHttp2, type RawClient } from "./raw-client.ts";

export const last: number = frameFlag.endStream;
/** Returns the numbers that a client uses for its first streams: all odd ones (RFC 9113 §5.1.1). */
export const streamIds = (count: number): number[] => Array.from({ length: count }, (_, i) => 2 * i + 1);

export const times = (length: number, of: (i: number) => Frame): Frame[] => Array.from({ length }, (_, i) => of(i));

/** Opens connections one after the other, and sends something on each. */
export async function openEach(
  count: number,
  open: (address: Address) => Promise<RawClient>,
  address: Address,
  say: (client: RawClient) => void = () => {},
): Promise<RawClient[]> {
  const clients: RawClient[] = [];
  for (let i = 0; i < count; i++) {
    const client = await open(address);
    say(client);
    clients.push(client);
  }
  return clients;
}

/** How many streams a wave has, well below a connection's limit. */
const maxWaveStreams = 100;

/** Sends frames in waves of streams, each after the server has handled the previous wave as far as possible. */
export async function sendInWaves(
  server: MeasuredServer,
  client: RawClient,
  ids: readonly number[],
  framesOf: (streamId: number) => readonly Frame[],
  waveStreams: number = maxWaveStreams,
): Promise<void> {
  for (let from = 0; from < ids.length; from += waveStreams) {
    client.send(...ids.slice(from, from + waveStreams).flatMap(framesOf));
    await server.ask("quiet");
  }
}

/** Sends frames in separate writes, so that the server reads most of them separately. */
export async function trickle(client: RawClient, frames: readonly Frame[]): Promise<void> {
  for (const each of frames) {
    client.write(frameBytes(each));
    await nextTurn();
  }
}

const oneByOne = create(WatchReadingsRequestSchema, { sensor: "one-by-one", count: 2 ** 31 - 1 });
const endlessWatch = encodeEnvelope(0, toBinary(WatchReadingsRequestSchema, oneByOne));

/** Opens server streams in waves, and resets each after its first messages. */
export async function leaveStreams({ addresses }: MeasuredServer, n: number): Promise<void> {
  using client = (await openRawHttp2(addresses.greenhouse)).drain();
  // A stream's window has room for a few messages.
  client.send(settingFrame(4, 64), windowUpdateFrame(0, 2 ** 20));
  for (let from = 0; from < n; from += maxWaveStreams) {
    const wave = streamIds(n).slice(from, from + maxWaveStreams);
    client.send(...wave.flatMap((id) => [greenhouseCall(id, "WatchReadings"), dataFrame(id, endlessWatch, last)]));
    await client.settled();
    client.send(...wave.map((id) => resetFrame(id, 8)));
    await client.settled();
  }
}

/** The header of a stream over REST. */
export const restReadings: readonly Field[] = [
  [":method", "POST"],
  [":path", "/readings"],
  [":scheme", "http"],
  [":authority", "x"],
];

/** The largest header list that the server accepts (RFC 9113 §6.5.2). */
const maxListBytes = 16 * 1024;

/** Fills a header up to the limit with small fields. They differ by stream, since equal blocks are decoded once. */
export function filled(header: readonly Field[], streamId: number): Field[] {
  const usedBytes = header.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  const more = Array.from({ length: Math.trunc((maxListBytes - usedBytes) / 42) }, (_, i): Field => [
    `f${String(i).padStart(3, "0")}`,
    String(streamId).padStart(6, "0"),
  ]);
  return [...header, ...more];
}

/** Returns an HTTP/1.1 request whose header has the largest allowed size. */
export function filledRequest(line: string, ...header: readonly Field[]): string {
  const lines = filled([["host", "x"], ...header], 1).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

export function post(path: string, contentType: string, body: Buffer, ...more: readonly string[]): Buffer {
  const fields = ["host: x", `content-type: ${contentType}`, `content-length: ${body.byteLength}`, ...more];
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`, "latin1"), body]);
}

export const greenhouseCall = (streamId: number, rpc: string, ...more: readonly Field[]): Frame =>
  headersFrame(streamId, [...grpcHeader(`/greenhouse.v1.GreenhouseService/${rpc}`), ...more]);

/** Returns a body in DATA frames with `sizeBytes` each. `flags` apply to the last frame. */
export function bodyFrames(streamId: number, body: Buffer, sizeBytes: number = 16_384, flags: number = 0): Frame[] {
  const count = Math.ceil(body.byteLength / sizeBytes);
  return times(count, (i) =>
    dataFrame(streamId, body.subarray(i * sizeBytes, (i + 1) * sizeBytes), i === count - 1 ? flags : 0),
  );
}

/** Returns a header block's frames without its end. */
export const endlessBlock = (streamId: number, block: Buffer): Frame[] =>
  bodyFrames(streamId, block).map(({ payload }, i) =>
    frame(i === 0 ? frameType.headers : frameType.continuation, 0, streamId, payload),
  );

/** MCP messages with many unknown names, and the maximum CPU time per KiB, in ordinary calls. */
// oxfmt-ignore
export const mcpMessages: readonly { what: string; atMost: string; wrap: (names: string) => string }[] = [
  { what: "the arguments of an MCP tool", atMost: "14", wrap: (names) =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kitchensink_v1_KitchenSink_Plain","arguments":{${names}}}}` },
  { what: "the `_meta` of an MCP message", atMost: "4",
    wrap: (names) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{${names}}}}` },
];
