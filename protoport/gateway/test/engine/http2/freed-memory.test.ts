import { expect, test } from "vitest";
import { markSingleUse } from "../../../src/http/exchange/index.ts";
import { encodeBlock } from "../../../src/engine/http2/hpack/encoder.ts";
import type { Http2Stream } from "../../../src/engine/http2/http2-stream.ts";
import { dataFrame, type FrameConnection, frameFlag, frameType } from "@protoport/testing/http";
import { answer, openEngine, receiving, statusBlock } from "../../../../testing/src/http2/http2-engine.ts";
import { answered, begun, windowUpdateFrame } from "../../../../testing/src/http2/http2-requests.ts";

const frameOf = (streamId: number): ReturnType<typeof dataFrame> => dataFrame(streamId, Buffer.alloc(16_384, streamId));

test("a chunk is freed unless a receiver keeps one of its pieces", async () => {
  const kept: Uint8Array[] = [];
  const used = new Set<ArrayBufferLike>();
  const serve = (stream: Http2Stream): void => {
    const keeps = stream.id === 1;
    stream.receiver = receiving(stream, {
      onData: (piece) => {
        stream.consumed(piece.byteLength);
        if (keeps) kept.push(piece);
        else used.add(piece.buffer);
        return keeps;
      },
      onEnd: () => answer(stream),
    });
  };
  await using connection = await openEngine({ serve });
  connection.send(begun(1), begun(3), ...Array.from({ length: 20 }, () => frameOf(3)));
  // Sent concurrently, so that chunks contain pieces from both.
  for (let i = 0; i < 20; i++) connection.send(frameOf(3), frameOf(1));
  connection.send(dataFrame(1, Buffer.of(1), frameFlag.endStream), dataFrame(3, Buffer.of(3), frameFlag.endStream));
  expect([await connection.readEnd(1), await connection.readEnd(3)]).toStrictEqual([answered, answered]);
  expect([Buffer.concat(kept).equals(Buffer.alloc(20 * 16_384 + 1, 1)), [...used].some(isFreed)]).toEqual([true, true]);
});

test("a chunk is not freed if its receiver throws", async () => {
  const kept: Uint8Array[] = [];
  const faults: unknown[] = [];
  const serve = (stream: Http2Stream): void => {
    stream.receiver = receiving(stream, {
      onData: (piece) => {
        kept.push(piece);
        throw new Error("a defect");
      },
    });
  };
  await using connection = await openEngine({ serve, onFault: (error) => faults.push(error) });
  connection.send(begun(1), ...Array.from({ length: 4 }, () => frameOf(1)));
  await connection.readEnd(1);
  expect([faults.length, kept.every((piece) => piece.byteLength > 0)]).toEqual([1, true]);
});

// Three windows. The last write has large pieces, which are not copied, and a small piece, which is copied.
const windows: readonly number[] = [65_535, 40_000, 2 * 16_384 + 100];
const bodyBytes = windows.reduce((sum, bytes) => sum + bytes, 0);

test.each([
  { name: "marked for single use is freed after sending", mark: markSingleUse, want: 0 },
  { name: "not marked for single use is kept", mark: (body: Uint8Array) => body, want: bodyBytes },
])("a response body $name", async ({ mark, want }) => {
  const body = mark(Buffer.alloc(bodyBytes, "x"));
  await using connection = await openEngine({
    serve: (stream) => {
      stream.sendHeaders([statusBlock(200)], false);
      stream.end(body, encodeBlock(["a", "b"]));
    },
  });
  connection.send(begun(1));
  const read: Buffer[] = [];
  for (const [i, bytes] of windows.entries()) {
    expect(body.byteLength).toBe(bodyBytes);
    if (i > 0) connection.send(windowUpdateFrame(0, bytes), windowUpdateFrame(1, bytes));
    read.push(await readData(connection, bytes));
    // The PING is acknowledged after everything else.
    await connection.settle();
  }
  expect([Buffer.concat(read).equals(Buffer.alloc(bodyBytes, "x")), body.byteLength]).toEqual([true, want]);
});

function isFreed(buffer: ArrayBufferLike): boolean {
  return buffer instanceof ArrayBuffer && buffer.detached;
}

async function readData(connection: FrameConnection, bytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let left = bytes; left > 0;) {
    const next = await connection.readUntil(({ type }) => type === frameType.data);
    if (next === undefined) throw new Error("the connection has closed");
    pieces.push(next.payload);
    left -= next.payload.byteLength;
  }
  return Buffer.concat(pieces);
}
