import { expect, test } from "vitest";
// oxfmt-ignore
import { GreenhouseService, startProxy, grpcResponse, startScriptedServer, watered, windowUpdateFrame
} from "@protoport/testing/proxy";
// oxfmt-ignore
import { dataFrame, emptyMessage, frameFlag, grpcHeader, headersFrame, openFrames, type Field, frame, frameType,
  openHttp2 } from "@protoport/testing/http";
import { retainedBytes } from "@protoport/testing/process";
import { setTimeout as pause } from "node:timers/promises";
import { startProxied } from "../../../support/greenhouses.ts";

const kibibyte = 1024;

test("messages buffered for a retry do not retain the received chunks", async () => {
  let received = Promise.withResolvers<void>();
  await using proxy = await startProxied({
    recordReadings: async (readings) => {
      for await (const reading of readings) if (reading.sensor === "") received.resolve();
      return {};
    },
  });
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

// An upstream that does not read uploads, and never enlarges stream windows, only the connection's.

const service = "/greenhouse.v1.GreenhouseService";
const header: readonly Field[] = Object.entries({ "content-type": "application/grpc", te: "trailers" });
const upload = { httpMethod: "POST", path: `${service}/RecordReadings`, header };
const call = { httpMethod: "POST", path: `${service}/WaterBed`, header, body: watered };

test.each([
  ["serves other calls", {}, 200],
  ["stalls with a window of 1 MiB", { limits: { connectionWindowBytes: 2 ** 20 } }, "stalled"],
])("a connection with 20 unread uploads %s", async (_name, options, outcome) => {
  await using upstream = await startScriptedServer({
    opening: [frame(frameType.settings, 0, 0), windowUpdateFrame(0, 2 ** 30)],
    request: (connection, id) => connection.send(...grpcResponse(id, watered)),
  });
  await using proxy = await startProxy(upstream.baseUrl, [GreenhouseService.file], options);
  using connection = await openHttp2(proxy.address);
  // A 4 KiB message, whose field 1 is a string.
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0x10, 0, 0x0a, 0xfd, 0x1f]), Buffer.alloc(4093, "a")]);
  for (let i = 0; i < 20; i++) connection.open(upload, { endStream: false }).end(Buffer.alloc(409_600, message));
  await expect.poll(() => upstream.frames.filter(({ type }) => type === frameType.data).length).toBeGreaterThan(19);
  const response = connection.exchange(call).then(({ httpStatus }) => httpStatus);
  response.catch(() => undefined);
  const stalled = outcome === 200 ? new Promise(() => undefined) : pause(300, "stalled");
  expect(await Promise.race([response, stalled])).toBe(outcome);
});
