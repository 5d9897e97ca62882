import { once } from "node:events";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
// oxfmt-ignore
import { createTestGateway, dataFrame, type Field, fieldValue, frameFlag, headersFrame, openFrames, openHttp1,
  openHttp2, startGreenhouse, within } from "../../../../../testing/src/index.ts";

const water = { httpMethod: "POST", path: "/beds/7:water", header: [["content-type", "application/json"]] as const };
const wholeWater = { ...water, body: Buffer.from("{}") };

test("drain() resolves immediately if no connection is open", async () => {
  const gateway = createTestGateway({ routes: () => {} });
  await gateway.listen();
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => timers.mockRestore());
  await gateway.drain(60_000);
  expect(timers).not.toHaveBeenCalled();
});

test("drain() waits for a call in flight, and sends GOAWAY to HTTP/2 clients", async () => {
  const slow = Promise.withResolvers<{ note: string }>();
  const started = Promise.withResolvers<void>();
  let calls = 0;
  await using greenhouse = await startGreenhouse({
    waterBed: () => {
      calls += 1;
      if (calls === 2) started.resolve();
      return slow.promise;
    },
  });
  using http1 = await openHttp1(greenhouse.address);
  using connection = await openHttp2(greenhouse.address);
  http1.request(wholeWater);
  const going = once(connection.session, "goaway");
  const response = connection.exchange(wholeWater);
  await within(started.promise, "both calls");
  const drained = greenhouse.gateway.drain(5000);
  await within(going, "GOAWAY");
  slow.resolve({ note: "done" });
  expect(String((await response).body)).toContain("done");
  const last = await http1.readResponse();
  expect(String(last.body)).toContain("done");
  expect(fieldValue(last.header, "connection")).toBe("close");
  await within(drained, "the end of the drain");
});

test("drain() destroys the remaining connections at its deadline", async () => {
  const reasons: unknown[] = [];
  const started = Promise.withResolvers<void>();
  await using greenhouse = await startGreenhouse({
    waterBed: (_, { signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason));
      started.resolve();
      return new Promise(() => {});
    },
  });
  using connection = await openFrames(greenhouse.address);
  const pseudo = Object.entries({ ":method": "POST", ":path": water.path, ":scheme": "http", ":authority": "x" });
  const header: Field[] = [...pseudo, ...water.header];
  connection.send(headersFrame(1, header), dataFrame(1, wholeWater.body, frameFlag.endStream));
  await within(started.promise, "the call");
  await within(greenhouse.gateway.drain(20), "the end of the drain");
  expect((await connection.readEnd(1)).kind).not.toBe("responded");
  expect(reasons).toMatchObject([{ code: Code.Unavailable }]);
  expect(greenhouse.completedRequests).toMatchObject([{ httpStatus: 0 }]);
});
test("drain() closes an idle connection", async () => {
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) });
  using connection = await openHttp1(greenhouse.address);
  connection.request(wholeWater);
  await connection.readResponse();
  await within(greenhouse.gateway.drain(600_000), "the end of the drain");
  expect(await connection.atEnd()).toBe(true);
});
