import { describe, expect, test } from "vitest";
import { createGateway } from "../../../src/gateway/index.ts";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { encodeEnvelope } from "../../support/envelope.ts";
import { grpcHeader } from "../../support/grpc-frames.ts";
import {
  clientPreface,
  dataFrame,
  frame,
  frameBytes,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
} from "../../support/http2-frames.ts";
import { deletePlantProcedure } from "../../support/wire-format.ts";

const header = grpcHeader(deletePlantProcedure);
const message = encodeEnvelope(0, Buffer.of(8, 7));

describe("the server of the engine, while it is drained,", () => {
  test("tells a connection that was accepted and had said nothing yet, and serves what crosses", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<object>();
    const gateway = createGateway({
      routes: (router) =>
        router.service(PlantService, {
          deletePlant: () => {
            asked.resolve();
            return answer.promise;
          },
        }),
    });
    const address = await gateway.listen({ host: "127.0.0.1", port: 0 });
    using silent = await openFrames(address, { settled: false });
    using busy = await openFrames(address);
    busy.send(headersFrame(1, header), dataFrame(1, message, frameFlag.endStream));
    await asked.promise;
    const drained = gateway.drain(10_000);

    const call = [headersFrame(1, header), dataFrame(1, message, frameFlag.endStream)];
    const opening = [frame(frameType.settings, 0, 0), frame(frameType.settings, frameFlag.ack, 0), ...call];
    silent.socket.write(Buffer.concat([clientPreface, ...opening.map(frameBytes)]));
    const goAway = await silent.readUntil(({ type }) => type === frameType.goAway);
    expect(goAway?.payload.readUInt32BE(0)).toBe(2 ** 31 - 1);
    const ping = await silent.readUntil(({ type }) => type === frameType.ping);
    silent.send(frame(frameType.ping, frameFlag.ack, 0, ping?.payload));
    const last = await silent.readUntil(({ type }) => type === frameType.goAway);
    expect(last?.payload.readUInt32BE(0)).toBe(1);

    answer.resolve({});
    const ends = await Promise.all([silent.readEnd(1), busy.readEnd(1)]);
    expect(ends).toStrictEqual([
      { kind: "answered", httpStatus: 200 },
      { kind: "answered", httpStatus: 200 },
    ]);
    busy[Symbol.dispose]();
    silent[Symbol.dispose]();
    await drained;
  });
});
