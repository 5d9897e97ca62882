import { expect, test } from "vitest";
import { GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import { dataFrame, emptyMessage, frameFlag, grpcHeader, headersFrame, openFrames } from "@protoport/testing/http";
import { retainedBytes } from "../../../../../testing/src/http/retained-bytes.ts";

const kibibyte = 1024;

test("messages buffered for a retry do not retain the received chunks", async () => {
  let received = Promise.withResolvers<void>();
  await using upstream = await startGreenhouse({
    recordReadings: async (readings) => {
      for await (const reading of readings) if (reading.sensor === "") received.resolve();
      return {};
    },
  });
  await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file]);
  using connection = await openFrames(proxy.address);
  connection.send(headersFrame(1, grpcHeader("/greenhouse.v1.GreenhouseService/RecordReadings")));
  const before = await retainedBytes();
  for (let at = 1; at <= 500; at += 1) {
    received = Promise.withResolvers();
    connection.send(
      dataFrame(1, emptyMessage),
      headersFrame(1 + 2 * at, grpcHeader("/nowhere")),
      dataFrame(1 + 2 * at, Buffer.alloc(12 * kibibyte), frameFlag.endStream),
    );
    await received.promise;
  }
  expect((await retainedBytes()) - before).toBeLessThan(2 * kibibyte * kibibyte);
});
