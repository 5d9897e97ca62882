import { once } from "node:events";
import { connect } from "node:http2";
import { expect, test } from "vitest";
import { startGreenhouse, within } from "@protoport/testing";
import { emptyMessage, grpcHeader } from "@protoport/testing/http";

test("a proxy's callers who leave streams after a message end no other stream", async () => {
  await using greenhouse = await startGreenhouse({
    watchReadings: async function* (_request, { signal }) {
      yield { sensor: "first" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
  });
  const { address, port } = greenhouse.address;
  const session = connect(`http://${address}:${String(port)}`);
  const header = Object.fromEntries(grpcHeader("/greenhouse.v1.GreenhouseService/WatchReadings"));
  const watch = async () => {
    const stream = session.request(header).on("error", () => undefined);
    stream.end(emptyMessage);
    await within(once(stream, "data"), "the first message");
    return stream;
  };
  const other = await watch();
  for (let left = 0; left < 401; left += 1) (await watch()).close(8);
  await watch();
  expect([session.closed, other.closed]).toEqual([false, false]);
  session.destroy();
});
