import { describe, expect, test } from "vitest";
import type { PlantStore } from "../../src/service/index.ts";
import { within } from "../../packages/testing/src/deadline.ts";
import { encodeEnvelope } from "../../packages/testing/src/gateway/envelope.ts";
import type { Field } from "../../packages/testing/src/carriers/exchange.ts";
import { grpcHeader } from "../../packages/testing/src/carriers/grpc-frames.ts";
import { openHttp2, readHttp2Answer } from "../../packages/testing/src/carriers/http2-connection.ts";
import {
  dataFrame,
  frameFlag,
  headersFrame,
  openFrames,
  resetFrame,
  type Frame,
} from "../../packages/testing/src/carriers/http2-frames.ts";
import { authorized, startPlantServer, tokens } from "../support/server/plant-server.ts";
import { fakeStore } from "../support/plants/fake-store.ts";
import { deletePlantProcedure } from "../support/plants/delete-plant.ts";

/** HTTP/2's error codes (RFC 9113 §7). */
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

/** How far a call comes before it is cancelled; none of these has a whole message, so none may run. */
const beginnings: readonly { readonly name: string; readonly frames: readonly Frame[] }[] = [
  { name: "its header", frames: [headersFrame(1, header)] },
  { name: "an empty frame", frames: [headersFrame(1, header), dataFrame(1, Buffer.alloc(0))] },
  { name: "half a prefix", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant).subarray(0, 3))] },
  { name: "its prefix", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant).subarray(0, 5))] },
  { name: "half a message", frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant).subarray(0, 6))] },
  {
    name: "a message whose stream is not ended",
    frames: [headersFrame(1, header), dataFrame(1, envelopeOf(slowPlant))],
  },
];

describe("a call that is cancelled", () => {
  test.each(beginnings)("after $name does not run", async ({ frames }) => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    using connection = await openFrames(server.address);
    connection.send(...frames, resetFrame(1, cancel), ...call(3, nextPlant));
    expect(await connection.readEnd(3)).toStrictEqual({ kind: "answered", httpStatus: 200 });
    expect(store.asked).toStrictEqual([nextPlant]);
  });

  test.each(beginnings)("by the end of its connection after $name does not run", async ({ frames }) => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    {
      using connection = await openFrames(server.address);
      connection.send(...frames);
      await connection.readFrame();
    }
    using connection = await openFrames(server.address);
    connection.send(...call(1, nextPlant));
    expect(await connection.readEnd(1)).toStrictEqual({ kind: "answered", httpStatus: 200 });
    expect(store.asked).toStrictEqual([nextPlant]);
  });

  test("while it runs gives up, and the connection goes on", async () => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    using connection = await openFrames(server.address);
    connection.send(...call(1, slowPlant));
    await within(store.isAsked(slowPlant), "the store to be asked");
    connection.send(resetFrame(1, cancel), ...call(3, nextPlant));
    await within(store.isGivenUp(slowPlant), "the call to be given up");
    expect(await connection.readEnd(3)).toStrictEqual({ kind: "answered", httpStatus: 200 });
  });

  test("by the end of its connection while it runs gives up", async () => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    {
      using connection = await openFrames(server.address);
      connection.send(...call(1, slowPlant));
      await within(store.isAsked(slowPlant), "the store to be asked");
    }
    await within(store.isGivenUp(slowPlant), "the call to be given up");
  });

  test("by the server's end gives up, and its stream ends", async () => {
    const store = openRecordingStore(new Set([slowPlant]));
    await using server = await startPlantServer({ store });
    using connection = await openFrames(server.address);
    connection.send(...call(1, slowPlant));
    await within(store.isAsked(slowPlant), "the store to be asked");
    await server[Symbol.asyncDispose]();
    await within(store.isGivenUp(slowPlant), "the call to be given up");
    expect(["answered", "reset", "go-away", "closed"]).toContain((await connection.readEnd(1)).kind);
  });
});

describe("a call whose client does not end its side", () => {
  const refusal = header.map((field): Field =>
    field[0] === "authorization" ? ["authorization", `Bearer ${tokens.unknown}`] : field,
  );

  test("is refused on its header alone", async () => {
    await using server = await startPlantServer();
    using connection = await openFrames(server.address);
    connection.send(headersFrame(1, refusal));
    expect(await connection.readEnd(1)).toStrictEqual({ kind: "answered", httpStatus: 200 });
  });

  test("is told to stop once it has sent too much after that", async () => {
    await using server = await startPlantServer();
    using connection = await openHttp2(server.address);
    const request = { httpMethod: "POST", path: deletePlantProcedure, header: refusal.slice(4) };
    const stream = connection.open(request, { endStream: false });
    // More than a server reads of a body that is not wanted; the client keeps to the windows by itself.
    stream.write(Buffer.alloc(300_000));
    // This side never says that it has ended, so that only a reset ends the stream.
    expect(await readHttp2Answer(stream)).toMatchObject({ httpStatus: 200, resetCode: noError });
  });
});

/** A store that writes down what it is asked, and answers when it is told to. */
interface RecordingStore extends PlantStore {
  /** The ids that were asked for, in their order. */
  readonly asked: readonly bigint[];
  /** Resolves when this id is asked for. */
  isAsked(id: bigint): Promise<void>;
  /** Resolves when the call for this id is given up. */
  isGivenUp(id: bigint): Promise<void>;
}

/** Opens a store in which every plant is there, and a deletion of one of `slow` takes until it is given up. */
function openRecordingStore(slow: ReadonlySet<bigint>): RecordingStore {
  const asked: bigint[] = [];
  const events = new Map<string, PromiseWithResolvers<void>>();
  const event = (name: string, id: bigint): PromiseWithResolvers<void> => {
    const key = `${name} ${String(id)}`;
    const known = events.get(key) ?? Promise.withResolvers<void>();
    events.set(key, known);
    return known;
  };
  return {
    asked,
    isAsked: (id) => event("asked", id).promise,
    isGivenUp: (id) => event("given up", id).promise,
    ...fakeStore({}),
    delete: async (id, { context: { signal } }) => {
      asked.push(id);
      event("asked", id).resolve();
      if (!slow.has(id)) return true;
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      event("given up", id).resolve();
      throw signal.reason;
    },
  };
}
