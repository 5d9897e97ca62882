import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
// oxfmt-ignore
import { createIssuedCertificate, dataFrame, encodeEnvelope, frameFlag, frameType, headersFrame, openFrames,
  startGreenhouse, type TestGreenhouse, waterBedProcedure, within } from "../../../testing/src/index.ts";
import { settingFrame, windowUpdateFrame } from "../../../testing/src/http2/http2-requests.ts";

// A client that ends its side by FIN, or under TLS by close_notify, may still be reading, or be disconnected. Sending
// something shows which. HTTP/1.1 has separate tests.

const { authority, ...certificate } = createIssuedCertificate("localhost");
const trusting = { ca: authority, servername: "localhost" };
/** More than an HTTP/2 window, and more than a socket buffers. */
const note = "orders".repeat(500_000);
const maxWindow = 2 ** 31 - 1;
type Way = { readonly name: string; readonly tls: boolean };

const http2Ways: readonly Way[] = [
  { name: "on HTTP/2", tls: false },
  { name: "on HTTP/2 over TLS", tls: true },
];

let greenhouse: TestGreenhouse;
let called: PromiseWithResolvers<void>;
let response: PromiseWithResolvers<object>;
let aborted: PromiseWithResolvers<unknown>;

beforeEach(async () => {
  called = Promise.withResolvers();
  response = Promise.withResolvers();
  aborted = Promise.withResolvers();
  greenhouse = await startGreenhouse(
    {
      waterBed: (_, { signal }) => {
        signal.addEventListener("abort", () => aborted.resolve(signal.reason));
        called.resolve();
        return response.promise;
      },
    },
    {},
    { tls: certificate, allowCleartext: true },
  );
});

afterEach(async () => {
  await greenhouse[Symbol.asyncDispose]();
});

/** Expects the handler's signal to abort, and a log entry with the caller. */
async function expectCancelled({ completedRequests: answers }: TestGreenhouse): Promise<void> {
  expect(await within(aborted.promise, "the end of the call")).toMatchObject({ code: Code.Canceled });
  await expect.poll(() => answers.length).toBeGreaterThan(0);
  expect(answers.at(-1)).toMatchObject({ httpStatus: 0, error: { code: Code.Canceled } });
  expect(answers.at(-1)?.peer.address).toBe("127.0.0.1");
}

type OpenCall = Awaited<ReturnType<typeof openFrames>>;

/** Opens a connection with a call whose handler has begun. */
async function openCall({ tls }: Way): Promise<OpenCall> {
  const connection = await openFrames(greenhouse.address, tls ? { tls: trusting } : {});
  connection.send(settingFrame(4, maxWindow), windowUpdateFrame(0, maxWindow - 65_535));
  // oxfmt-ignore
  const header = [
    ...([[":method", "POST"], [":path", waterBedProcedure], [":scheme", tls ? "https" : "http"]] as const),
    ...([[":authority", "localhost"], ["content-type", "application/grpc"], ["te", "trailers"]] as const),
  ];
  connection.send(headersFrame(1, header), dataFrame(1, encodeEnvelope(0, Buffer.of()), frameFlag.endStream));
  await within(called.promise, "the handler");
  return connection;
}

test.each(http2Ways)("a client that half-closes after a request $name gets the complete response", async (way) => {
  using connection = await openCall(way);
  connection.socket.end();
  // The server's PING shows that it has detected the half-close.
  await connection.readUntil(({ type, flags }) => type === frameType.ping && flags === 0);
  response.resolve({ note });
  let bytes = 0;
  await connection.readUntil(({ type, payload }) => {
    if (type === frameType.data) bytes += payload.byteLength;
    return type === frameType.headers && bytes > 0;
  });
  expect(bytes).toBeGreaterThan(note.length);
  expect(await connection.readUntil(() => false)).toBeUndefined();
});

test.each(http2Ways)("$name, the call of a disconnected client is cancelled", async (way) => {
  using connection = await openCall(way);
  // The client has nothing left to read. Otherwise its system would reset the connection, which the server detects
  // immediately.
  await connection.readUntil(({ type, flags }) => type === frameType.settings && flags === frameFlag.ack);
  connection.socket.destroy();
  await expectCancelled(greenhouse);
});
