import { setImmediate as nextTurn } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { writeEnvelope } from "../src/protocols/envelope/envelope.ts";
import { type HttpBody, HttpBodySchema } from "../src/protobuf/gen/google/api/httpbody_pb.ts";
import { FileService } from "../../testing/src/gen/files/v1/files_pb.ts";
// oxfmt-ignore
import { type Address, dataFrame, type Field, frameFlag, headersFrame, openFrames, openHttp1
} from "@protoport/testing";
import { startFiles } from "../../testing/src/gateway/files.ts";
import { answered } from "../../testing/src/http2/http2-requests.ts";

const KiB = 1024;

// Lengths around the sizes of frames, socket reads, copied messages and windows.
const lengths: readonly number[] = [
  ...[1, 4 * KiB, 16 * KiB, 32 * KiB, 64 * KiB, 128 * KiB, 256 * KiB].flatMap((bytes) => [bytes, bytes + 1]),
  16 * KiB - 8,
  64 * KiB - 9,
  64 * KiB - 10,
  300_000,
  1024 * KiB,
  1024 * KiB - 300,
];

// The messages by first octet. Each consists of octets that no other message has.
const sent: ReadonlyMap<number | undefined, Uint8Array> = new Map(
  lengths.map((length, i) => [i + 1, new Uint8Array(length).fill(i + 1)]),
);

test.each([
  { name: "gRPC over HTTP/2", open: (baseUrl: string) => createGrpcTransport({ baseUrl }) },
  {
    name: "Connect over HTTP/1.1",
    open: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
  },
])("over $name, retained messages never contain bytes of other messages", async ({ open }) => {
  const kept: Uint8Array[] = [];
  await using files = await startFiles("listening", {
    echo: (request, { signal }) => {
      kept.push(request.data);
      const data = Uint8Array.from(request.data);
      // After its call has ended, the handler may change its data again.
      signal.addEventListener("abort", () => data.fill(0));
      return { data };
    },
  });
  const client = createClient(FileService, open(`http://127.0.0.1:${String(files.address.port)}`));
  const answers = await Promise.all([...sent.values()].map((data) => client.echo({ data })));
  expect(answers.map(({ data }) => data.byteLength)).toStrictEqual(lengths);
  expect([...kept, ...answers.map(({ data }) => data)].filter(isMixed)).toStrictEqual([]);
  expect(kept).toHaveLength(lengths.length);
});

const path = "/files.v1.FileService/Echo";

test.each([
  { name: "a complete HTTP/2 body", send: sendFrames, options: {} },
  { name: "an HTTP/1.1 body", send: sendHttp1, options: {} },
  // Waits until the complete body has arrived before it is read.
  { name: "a body queued by the request gate", send: sendHttp1, options: { requestGate: () => nextTurn() } },
])("a retained message of $name is not overwritten by later data", async ({ send, options }) => {
  const kept: Uint8Array[] = [];
  const echo = ({ data }: HttpBody): object => (kept.push(data), {});
  await using files = await startFiles("listening", { echo }, options);
  await send(files.address);
  expect(kept.map((data) => Buffer.compare(data, Buffer.alloc(10_000, data[0])))).toStrictEqual(kept.map(() => 0));
  expect(kept.length).toBeGreaterThan(0);
});

const request = toBinary(HttpBodySchema, create(HttpBodySchema, { data: Buffer.alloc(10_000, "x") }));

async function sendFrames(address: Address): Promise<void> {
  const header: Field[] = Object.entries({ ":method": "POST", ":scheme": "http", ":authority": "a", ":path": path });
  using connection = await openFrames(address);
  const calls = [1, 3, 5].flatMap((id) => [
    headersFrame(id, [...header, ["content-type", "application/grpc"], ["te", "trailers"]]),
    dataFrame(id, writeEnvelope(0, request), frameFlag.endStream),
  ]);
  connection.send(...calls);
  expect([await connection.readEnd(1), await connection.readEnd(5)]).toStrictEqual([answered, answered]);
}

async function sendHttp1(address: Address): Promise<void> {
  using connection = await openHttp1(address);
  const body = Buffer.concat([request, request]);
  connection.request({ httpMethod: "POST", path, header: [["content-type", "application/proto"]], body });
  expect((await connection.readResponse()).httpStatus).toBe(200);
}

const isMixed = (data: Uint8Array): boolean =>
  Buffer.compare(data, sent.get(data[0]) ?? new Uint8Array(0)) !== 0 || data.byteLength === 0;
