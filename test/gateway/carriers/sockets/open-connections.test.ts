import { expect, test } from "vitest";
import { createGateway } from "../../../../src/gateway/index.ts";
import type { Address } from "../../../support/carriers/exchange.ts";
import { openHttp1 } from "../../../support/carriers/http1-connection.ts";

/** As many as are served beyond the limit. */
const spareMax = 64;

const get = { httpMethod: "GET", path: "/livez", header: [] } as const;

const answer = () => ({ httpStatus: 200, body: "" });

async function startGateway(connections: number) {
  const gateway = createGateway({
    routes: () => {},
    limits: { connections },
    endpoints: [{ path: get.path, open: true, answer }],
  });
  const address = await gateway.listen({ host: "127.0.0.1" });
  return { address, [Symbol.asyncDispose]: () => gateway.close() };
}

/** A connection that has had an answer. */
async function openAnswered(address: Address) {
  const connection = await openHttp1(address);
  connection.request(get);
  expect((await connection.readAnswer()).httpStatus).toBe(200);
  return connection;
}

test("of the connections beyond the limit, the oldest is closed for each one too many", async () => {
  await using gateway = await startGateway(2);
  using stack = new DisposableStack();
  const open = async () => stack.use(await openAnswered(gateway.address));
  const [first, second] = [await open(), await open()];
  const spare = [];
  for (let i = 0; i < spareMax; i++) spare.push(await open());
  const [oldest, next] = spare;
  await open();
  expect(await oldest?.atEnd()).toBe(true);
  await open();
  expect(await next?.atEnd()).toBe(true);
  // Those within the limit are kept, whatever comes.
  for (const kept of [first, second]) {
    kept.request(get);
    expect((await kept.readAnswer()).httpStatus).toBe(200);
  }
});

test("the oldest connection beyond the limit takes the place of one that has closed", async () => {
  await using gateway = await startGateway(1);
  using stack = new DisposableStack();
  const open = async () => stack.use(await openAnswered(gateway.address));
  const first = await open();
  const heir = await open();
  first.socket.end();
  expect(await first.atEnd()).toBe(true);
  const [oldest] = [await open(), ...(await Promise.all(Array.from({ length: spareMax }, open)))];
  expect(await oldest.atEnd()).toBe(true);
  heir.request(get);
  expect((await heir.readAnswer()).httpStatus).toBe(200);
});
