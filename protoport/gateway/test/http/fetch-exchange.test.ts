import { describe, expect, test } from "vitest";
import { FetchExchange } from "../../src/http/fetch-exchange.ts";

test("FetchExchange reads a body at most 128 KiB ahead of its reader", async () => {
  const pieceBytes = 16 * 1024;
  let pulled = 0;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new Uint8Array(pieceBytes));
      },
    },
    { highWaterMark: 0 },
  );
  const exchange = new FetchExchange(new Request("http://x/", { method: "POST", body, duplex: "half" }));
  const pieces = exchange.body?.pieces()[Symbol.asyncIterator]();
  for (let received = 0; received < 100; received += 1) {
    expect((await pieces?.next())?.value?.byteLength).toBe(pieceBytes);
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    expect((pulled - received) * pieceBytes).toBeLessThan(128 * 1024);
  }
  exchange.reset();
});

describe.each(["respond", "begin"] as const)("FetchExchange.%s()", (send) => {
  test.each([199, 200.5, 600, Number.NaN])("throws RangeError for the status %d", (httpStatus) => {
    const exchange = new FetchExchange(new Request("http://x/"));
    expect(() => exchange[send](httpStatus, [])).toThrow(
      new RangeError(`the HTTP status must be an integer between 200 and 599, got ${httpStatus}`),
    );
    exchange.reset();
  });

  test.each([200, 599])("sends the status %d", async (httpStatus) => {
    const exchange = new FetchExchange(new Request("http://x/"));
    exchange[send](httpStatus, []);
    expect(await exchange.response).toMatchObject({ status: httpStatus });
    exchange.end();
  });
});
