import { expect, test } from "vitest";
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
