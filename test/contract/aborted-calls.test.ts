import { describe, expect, test } from "vitest";
import type { PlantStore } from "../../src/service/index.ts";
// oxfmt-ignore
import { dataFrame, encodeEnvelope, type Field, type Frame, frameFlag, grpcHeader, headersFrame, openFrames, openHttp2,
  readHttp2Response, resetFrame, within } from "@protoport/testing";
import { authorized, startPlantServer, tokens } from "../support/server/plant-server.ts";
import { deletePlantProcedure, fakeStore } from "../support/plants/index.ts";

/** HTTP/2 error codes (RFC 9113 §7). */
const noError = 0;
const cancel = 8;
const slowPlant = 7n;
const nextPlant = 8n;
const header: readonly Field[] = [...grpcHeader(deletePlantProcedure), authorized];
const envelopeOf = (id: bigint): Buffer => encodeEnvelope(0, Buffer.of(8, Number(id)));
const call = (streamId: number, id: bigint): Frame[] => [
  headersFrame(streamId, header),
  dataFrame(streamId, envelopeOf(id), frameFlag.endStream),
];

/** The part that is sent before the call is cancelled. No message is complete, so the call must not run. */
const incompleteCalls: readonly { readonly name: string; readonly frames: readonly Frame[] }[] = [
  { name: "its header", frames: [headersFrame(1, header)] },
  { name: "an empty frame", frames: [headersFrame(1, header), dataFrame(1, Buffer.alloc(0))] },
  { name: "half a prefix", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant).subarray(0, 3))] },
  { name: "its prefix", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant).subarray(0, 5))] },
  { name: "half a message", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant).subarray(0, 6))] },
  { name: "a message without END_STREAM", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant))] },
];

describe("a cancelled call", () => {
  test.each(incompleteCalls)("that is reset after $name does not run", async ({ frames }) => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    using connection = await openFrames(server.address);
    connection.send(...frames, resetFrame(1, cancel), ...call(3, nextPlant));
    expect(await connection.readEnd(3)).toStrictEqual({ kind: "responded", httpStatus: 200 });
    expect(store.deletions).toStrictEqual([nextPlant]);
  });

  test.each(incompleteCalls)("whose connection closes after $name does not run", async ({ frames }) => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    {
      using connection = await openFrames(server.address);
      connection.send(...frames);
      await connection.readFrame();
    }
    using connection = await openFrames(server.address);
    connection.send(...call(1, nextPlant));
    expect(await connection.readEnd(1)).toStrictEqual({ kind: "responded", httpStatus: 200 });
    expect(store.deletions).toStrictEqual([nextPlant]);
  });

  test("is aborted in the store after a reset of its stream", async () => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    using connection = await openFrames(server.address);
    connection.send(...call(1, slowPlant));
    await within(store.isCalled(slowPlant), "the call of the store");
    connection.send(resetFrame(1, cancel), ...call(3, nextPlant));
    await within(store.isAborted(slowPlant), "the abort of the call");
    expect(await connection.readEnd(3)).toStrictEqual({ kind: "responded", httpStatus: 200 });
  });

  test("is aborted in the store when its connection closes", async () => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    {
      using connection = await openFrames(server.address);
      connection.send(...call(1, slowPlant));
      await within(store.isCalled(slowPlant), "the call of the store");
    }
    await within(store.isAborted(slowPlant), "the abort of the call");
  });

  test("is aborted in the store when the server closes", async () => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    using connection = await openFrames(server.address);
    connection.send(...call(1, slowPlant));
    await within(store.isCalled(slowPlant), "the call of the store");
    await server[Symbol.asyncDispose]();
    await within(store.isAborted(slowPlant), "the abort of the call");
    expect(["responded", "reset", "go-away", "closed"]).toContain((await connection.readEnd(1)).kind);
  });
});

describe("a refused call without END_STREAM", () => {
  const refusal = header.map((field): Field =>
    field[0] === "authorization" ? ["authorization", `Bearer ${tokens.unknown}`] : field,
  );

  test("gets a response after its header", async () => {
    await using server = await startPlantServer();
    using connection = await openFrames(server.address);
    connection.send(headersFrame(1, refusal));
    expect(await connection.readEnd(1)).toStrictEqual({ kind: "responded", httpStatus: 200 });
  });

  test("is reset after the client has sent too many bytes", async () => {
    await using server = await startPlantServer();
    using connection = await openHttp2(server.address);
    const request = { httpMethod: "POST", path: deletePlantProcedure, header: refusal.slice(4) };
    const stream = connection.open(request, { endStream: false });
    // The server does not read that much of an unwanted body. node:http2 applies flow control to the client.
    stream.write(Buffer.alloc(300_000));
    // The client never ends the stream, so only a reset closes it.
    expect(await readHttp2Response(stream)).toMatchObject({ httpStatus: 200, resetCode: noError });
  });
});

interface RecordingStore extends PlantStore {
  readonly deletions: readonly bigint[];
  isCalled(id: bigint): Promise<void>;
  isAborted(id: bigint): Promise<void>;
}

/** Opens a store that has every plant. A deletion whose id is in `slow` waits until it is aborted. */
function openRecordingStore(slow: ReadonlySet<bigint>): RecordingStore {
  const deletions: bigint[] = [];
  const events = new Map<string, PromiseWithResolvers<void>>();
  const event = (name: string, id: bigint): PromiseWithResolvers<void> => {
    const key = `${name} ${String(id)}`;
    const known = events.get(key) ?? Promise.withResolvers<void>();
    events.set(key, known);
    return known;
  };
  return {
    deletions,
    isCalled: (id) => event("called", id).promise,
    isAborted: (id) => event("aborted", id).promise,
    ...fakeStore({}),
    delete: async (id, { context: { signal } }) => {
      deletions.push(id);
      event("called", id).resolve();
      if (!slow.has(id)) return true;
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      event("aborted", id).resolve();
      throw signal.reason;
    },
  };
}
