import { expect, test } from "vitest";
import { openMemoryStore } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/index.ts";
// oxfmt-ignore
import { type Address, dataFrame, encodeEnvelope, type Field, type Frame, frameFlag, frameType, grpcHeader,
  headersFrame, openFrames, resetFrame } from "@protoport/testing";
import { expectNothingKept } from "../../../protoport/testing/src/http/leaks.ts";
import { authorized, startPlantServer } from "../../support/server/plant-server.ts";
import { deletePlantProcedure } from "../../support/plants/delete-plant.ts";

/** The calls that must not leak, and calls before them, which warm up permanent caches. */
const calls = 100_000;
const warmUpCalls = 10_000;
/** The engines close a connection that resets more streams, a thousand with Node.js's, 400 with the gateway's. */
const callsPerConnection = 300;
/** Frames are sent in portions, so that calls are cancelled in different states. */
const callsPerWrite = 30;
/** The smallest leak per call is an array slot, eight bytes. Less is heap noise. */
const growthLimitBytes = calls * 6;

const cancel = 8;
const name = `${String(calls)} cancelled calls leak nothing`;
test(name, { timeout: 300_000 }, async () => {
  const waiting = new Set<bigint>();
  await using server = await startPlantServer({ store: openWaitingStore(waiting) });
  await abortCalls(server.address, warmUpCalls);
  await expectNothingKept(() => abortCalls(server.address, calls), growthLimitBytes);
  expect(waiting).toStrictEqual(new Set());
});

/** Opens a store in which every deletion waits until it is cancelled. `waiting` contains the waiting deletions. */
function openWaitingStore(waiting: Set<bigint>): PlantStore {
  let last = 0n;
  return {
    ...openMemoryStore(),
    delete: async (_id, { context: { signal } }) => {
      const call = (last += 1n);
      waiting.add(call);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      waiting.delete(call);
      throw signal.reason;
    },
  };
}

async function abortCalls(address: Address, count: number): Promise<void> {
  for (let done = 0; done < count; done += callsPerConnection) {
    using connection = await openFrames(address);
    for (let sent = 0; sent < callsPerConnection; sent += callsPerWrite) {
      const streamIds = Array.from({ length: callsPerWrite }, (_, index) => 2 * (sent + index) + 1);
      connection.send(...streamIds.flatMap(beginning));
      connection.send(...streamIds.map((streamId) => resetFrame(streamId, cancel)), ping);
      await connection.readUntil(({ type }) => type === frameType.ping);
    }
  }
}

const header: readonly Field[] = [
  ...grpcHeader(deletePlantProcedure),
  // A deadline has a timer, which must be released, too.
  ["grpc-timeout", "1H"],
  authorized,
];

const envelope = encodeEnvelope(0, Buffer.of(8, 7));

// Returns in turn a header alone, half a message, a complete message on an open stream, and a running call.
function beginning(streamId: number): Frame[] {
  const turn = ((streamId - 1) / 2) % 4;
  const head = headersFrame(streamId, header);
  if (turn === 0) return [head];
  if (turn === 1) return [head, dataFrame(streamId, envelope.subarray(0, 6))];
  return [head, dataFrame(streamId, envelope, turn === 2 ? 0 : frameFlag.endStream)];
}

const ping: Frame = { type: frameType.ping, flags: 0, streamId: 0, payload: Buffer.alloc(8) };
