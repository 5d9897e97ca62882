import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { dataFrame, grpcHeader, headersFrame, openFrames } from "@protoport/testing/http";
import { retainedBytes } from "@protoport/testing/process";
import { encodeEnvelope } from "../../../../../testing/src/gateway/envelope.ts";
import { startGreenhouse } from "../../../../../testing/src/gateway/greenhouse.ts";
import { http2Servers } from "../../../../../testing/src/gateway/listen-for-tests.ts";

test.each(http2Servers)("over HTTP/2 (%s), announced messages take no memory before they arrive", async (http2) => {
  const streams = 64;
  let waiting = 0;
  const handlers: Parameters<typeof startGreenhouse>[0] = {
    recordReadings: async (readings) => {
      const first = readings[Symbol.asyncIterator]().next();
      waiting += 1;
      await first;
      return {};
    },
  };
  await using greenhouse = await startGreenhouse(handlers, {}, { http2 });
  using connection = await openFrames(greenhouse.address);
  const beforeBytes = await retainedBytes();
  for (let at = 0; at < streams; at++) {
    const id = 2 * at + 1;
    const announced = encodeEnvelope(0, Buffer.of(), 4 * 1024 * 1024);
    connection.send(headersFrame(id, grpcHeader("/greenhouse.v1.GreenhouseService/RecordReadings")));
    connection.send(dataFrame(id, announced));
  }
  await expect.poll(() => waiting).toBe(streams);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  expect((await retainedBytes()) - beforeBytes).toBeLessThan(16 * 1024 * 1024);
});
