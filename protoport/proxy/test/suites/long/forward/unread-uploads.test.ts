import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Field, frame, frameType, openHttp2 } from "@protoport/testing/http";
import { grpcResponse, startProxy, startScriptedServer, watered, windowUpdateFrame } from "@protoport/testing/proxy";

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
  for (let i = 0; i < 20; i++)
    connection.open(upload, { endStream: false }).end(Buffer.concat(Array(100).fill(message)));
  await expect
    .poll(() => upstream.frames.filter(({ type }) => type === frameType.data).length)
    .toBeGreaterThanOrEqual(20);
  const response = connection.exchange(call).then(({ httpStatus }) => httpStatus);
  response.catch(() => undefined);
  const stalled = outcome === 200 ? new Promise(() => undefined) : pause(300, "stalled");
  expect(await Promise.race([response, stalled])).toBe(outcome);
});
